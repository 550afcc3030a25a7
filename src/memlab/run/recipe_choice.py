"""Which recipe is meant: one that is said, by name or as a value, or the one that a config says."""

from __future__ import annotations

from ..model import Model
from ..recipe.recipe import Recipe
from ..recipe.recipe_table import NAMED
from . import program_defaults

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Protocol

    from .run import Run

    class Configured(Protocol):
        """What has a config: a described model, or one that only its own code knows."""

        @property
        def config(self) -> Mapping[str, Any]: ...


# What people call a precision, as recipes: fp16 without what a gradient scaler adds.
PRECISIONS = {
    "fp32": Recipe.named("fp32"),
    "bf16": Recipe.named("bf16"),
    "fp16": Recipe(name="fp16", weights="fp16", gradients="fp16"),
    "autocast-bf16": Recipe.named("autocast"),
    "autocast-fp16": Recipe(name="autocast fp16", autocast="fp16"),
}
DTYPES = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16"}


def recipe_for(
    model: Configured, recipe: Recipe | str | None = None, run: Run | None = None
) -> Recipe:
    """The recipe itself, the one of that name, or what a program takes by itself.

    None        the precision of the run's program (memlab.run.program_defaults), where it has one;
                or that of the model's config or, of a preset, of the published one; fp32 where
                there is no dtype, as transformers' from_config makes it
    Raises      ValueError for an unknown name, and for a dtype in the config that no recipe has
    """
    if isinstance(recipe, Recipe):
        return recipe
    if recipe is not None:
        known = recipe in PRECISIONS and recipe not in NAMED
        return PRECISIONS[recipe] if known else Recipe.named(recipe)
    if run is not None and (own := program_defaults.precision(run)):
        return PRECISIONS[own]
    return PRECISIONS[published(model) or "fp32"]


def published(model: Configured) -> str:
    """The precision in which from_pretrained() loads this model; "" where nothing says it.

    Raises      ValueError for a dtype in the config that no recipe has
    """
    said = model.config.get("dtype") or model.config.get("torch_dtype")
    if said is None:
        return getattr(model, "published", None) or ""
    name = str(said).split(".")[-1]
    if name not in DTYPES:
        known_types = ", ".join(sorted(DTYPES))
        raise ValueError(f"the config says dtype={said!r}; known: {known_types}; give a recipe")
    return DTYPES[name]


def tied_as(model: Model, recipe: Recipe) -> Model:
    """The model with the output head that the recipe says, where it says one."""
    return model if recipe.tie is None else model.replace(tied=recipe.tie)
