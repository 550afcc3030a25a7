"""Formats that are narrower than was told."""

from __future__ import annotations

from ...recipe import Recipe
from ..case import of_recipe
from ..causes.cause import DTYPES, OFTEN, SELDOM, SOMETIMES, STATES, Cause
from .turns import as_changed


def _no_master(recipe: Recipe) -> Recipe | None:
    if recipe.master is None:
        return None
    return Recipe.named("bf16").replace(optimizer=recipe.optimizer)


def _narrow_states(recipe: Recipe) -> Recipe | None:
    if recipe.states is None or recipe.master or recipe.optimizer != "adamw":
        return None
    return recipe.replace(states=None)


def _narrow_gradients(recipe: Recipe) -> Recipe | None:
    if recipe.gradients != "fp32" or recipe.weights == "fp32":
        return None
    return recipe.replace(gradients=recipe.weights, accumulator=None)


def _momentum(recipe: Recipe) -> Recipe | None:
    return recipe.replace(optimizer="momentum") if recipe.optimizer == "adamw" else None


def _sgd(recipe: Recipe) -> Recipe | None:
    return recipe.replace(optimizer="sgd", states=None) if recipe.optimizer != "sgd" else None


FORMATS = (
    Cause("all in bf16, not fp32", OFTEN, "formats", as_changed("pure bf16"), DTYPES),
    Cause(
        "autocast: products in bf16",
        OFTEN,
        "formats",
        as_changed("autocast"),
        "print(logits.dtype) after forward; print(trainer.args.bf16)",
    ),
    Cause("no fp32 master copy", SOMETIMES, "formats", of_recipe(_no_master), DTYPES),
    Cause("states in the weights' format", SOMETIMES, "states", of_recipe(_narrow_states), STATES),
    Cause(
        "gradients in the weights' format",
        SOMETIMES,
        "gradients",
        of_recipe(_narrow_gradients),
        "print({p.grad.dtype for p in model.parameters()}) after backward",
    ),
    Cause("AdamW's states in few bits", SOMETIMES, "states", as_changed("8-bit states"), STATES),
    Cause(
        "Adafactor, whose states are rows and columns",
        SELDOM,
        "states",
        as_changed("Adafactor"),
        "print(type(optimizer))",
    ),
    Cause(
        "one state: SGD with momentum, Lion",
        SELDOM,
        "states",
        of_recipe(_momentum),
        "print(type(optimizer))",
    ),
    Cause("no states: plain SGD", SELDOM, "states", of_recipe(_sgd), "print(type(optimizer))"),
)
