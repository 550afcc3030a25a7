"""Weights that are not trained, or are there once where two were counted."""

from __future__ import annotations

from ...model.tensors import COMPONENTS
from ...recipe.chosen import tied_as
from ..case import Case
from ..causes.cause import OFTEN, SELDOM, SOMETIMES, Cause
from .turns import as_changed

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Callable

TRAINABLE = "print(sum(p.numel() for p in model.parameters() if p.requires_grad))"
NAMES = "print([n for n, p in model.named_parameters() if not p.requires_grad])"
ADAPTERS = "LoRA of rank 16 on every linear layer"


def _frozen(*parts: str) -> Callable[[Case], Case | None]:
    """The same with these components not trained, of those that the model has."""

    def turned(case: Case) -> Case | None:
        run = case.run
        if run.tokens is None or run.frozen or run.adapters is not None:
            return None
        there = {tensor.component for tensor in case.model.tensors()}
        names = tuple(part for part in parts if part in there)
        left = there - set(names)
        return case.replace(run=run.replace(frozen=names)) if names and left else None

    return turned


def _tied(case: Case) -> Case | None:
    if case.model.tied:
        return None
    recipe = case.recipe.replace(name=case.recipe.name, tie=True)
    return case.replace(model=tied_as(case.model, recipe), recipe=recipe)


TRAINED = (
    Cause(
        "adapters alone are trained (LoRA)",
        OFTEN,
        "trained",
        as_changed(ADAPTERS),
        TRAINABLE,
    ),
    Cause(
        "adapters alone, on a base in nf4",
        SOMETIMES,
        "trained",
        as_changed("the same LoRA on a base in nf4"),
        TRAINABLE,
    ),
    Cause(
        "the embedding not trained",
        SOMETIMES,
        "trained",
        _frozen("embedding", "positions"),
        NAMES,
    ),
    Cause(
        "embedding and output head not trained",
        SOMETIMES,
        "trained",
        _frozen("embedding", "positions", "lm_head"),
        NAMES,
    ),
    Cause(
        "the feed-forward layers not trained",
        SELDOM,
        "trained",
        _frozen("feed_forward"),
        NAMES,
    ),
    Cause(
        "the output head alone trained",
        SELDOM,
        "trained",
        _frozen(*(part for part in COMPONENTS if part != "lm_head"), "other"),
        NAMES,
    ),
    Cause(
        "tied embeddings: the output head is the embedding",
        SOMETIMES,
        "tied",
        _tied,
        "print(model.config.tie_word_embeddings)",
    ),
)
