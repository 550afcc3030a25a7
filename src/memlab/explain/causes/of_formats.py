"""Formats that are wider than was believed."""

from __future__ import annotations

from ...recipe import Recipe
from ..case import Case, of_recipe
from .cause import DTYPES, LINES, OFTEN, SOMETIMES, STATES, Cause


def _fp32(recipe: Recipe) -> Recipe | None:
    told = {recipe.weights, recipe.gradients, recipe.updated}
    return None if told == {"fp32"} else Recipe.named("fp32")


def _states(recipe: Recipe) -> Recipe | None:
    if recipe.optimizer == "adamw" and set(recipe.states or [recipe.updated]) == {"fp32"}:
        return None
    name = f"{recipe.name}, AdamW in fp32"
    return recipe.replace(name=name, optimizer="adamw", states=("fp32", "fp32"))


def _master(recipe: Recipe) -> Recipe | None:
    if recipe.master == "fp32" or recipe.weights == "fp32":
        return None
    return recipe.replace(name="fp32 master", master="fp32")


def _gradients(case: Case) -> Case | None:
    if case.recipe.gradients in (None, "fp32") or case.run.adapters is not None:
        return None
    return case.replace(recipe=case.recipe.replace(name="fp32 gradients", gradients="fp32"))


def _autocast(recipe: Recipe) -> Recipe | None:
    return Recipe.named("fp32") if recipe.autocast else None


FORMATS = (
    Cause("everything in fp32", OFTEN, "formats", of_recipe(_fp32), DTYPES),
    Cause("AdamW's states in fp32", OFTEN, "states", of_recipe(_states), STATES),
    Cause("an fp32 master copy, updated in fp32", SOMETIMES, "formats", of_recipe(_master), LINES),
    Cause(
        "gradients in fp32",
        SOMETIMES,
        "gradients",
        _gradients,
        "print({p.grad.dtype for p in model.parameters()}) after backward",
    ),
    Cause(
        "no autocast",
        SOMETIMES,
        "formats",
        of_recipe(_autocast),
        "print(logits.dtype) after forward",
    ),
)
