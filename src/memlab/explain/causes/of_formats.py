"""Formats that are wider than was believed, or narrower."""

from __future__ import annotations

from ...recipe import Recipe
from ..case import Case, of_recipe
from .cause import DTYPES, LINES, OFTEN, SELDOM, SOMETIMES, STATES, Cause
from .turns import as_changed

GRADIENTS = "print({p.grad.dtype for p in model.parameters()}) after backward"
OPTIMIZER = "print(type(optimizer))"
AUTOCAST = "print(logits.dtype) after forward"
TRAINER = f"{AUTOCAST}; print(trainer.args.bf16)"
ADAFACTOR = "Adafactor, whose states are rows and columns"


@of_recipe
def _fp32(recipe: Recipe) -> Recipe | None:
    told = {recipe.weights, recipe.gradients, recipe.updated}
    return None if told == {"fp32"} else Recipe.named("fp32")


@of_recipe
def _states(recipe: Recipe) -> Recipe | None:
    if recipe.optimizer == "adamw" and set(recipe.states or [recipe.updated]) == {"fp32"}:
        return None
    name = f"{recipe.name}, AdamW in fp32"
    return recipe.replace(name=name, optimizer="adamw", states=("fp32", "fp32"))


@of_recipe
def _master(recipe: Recipe) -> Recipe | None:
    if recipe.master == "fp32" or recipe.weights == "fp32":
        return None
    return recipe.replace(name="fp32 master", master="fp32")


def _gradients(case: Case) -> Case | None:
    if case.recipe.gradients in (None, "fp32") or case.run.adapters is not None:
        return None
    return case.replace(recipe=case.recipe.replace(name="fp32 gradients", gradients="fp32"))


@of_recipe
def _autocast(recipe: Recipe) -> Recipe | None:
    return Recipe.named("fp32") if recipe.autocast else None


@of_recipe
def _no_master(recipe: Recipe) -> Recipe | None:
    if recipe.master is None:
        return None
    return Recipe.named("bf16").replace(optimizer=recipe.optimizer)


@of_recipe
def _narrow_states(recipe: Recipe) -> Recipe | None:
    if recipe.states is None or recipe.master or recipe.optimizer != "adamw":
        return None
    return recipe.replace(states=None)


@of_recipe
def _narrow_gradients(recipe: Recipe) -> Recipe | None:
    if recipe.gradients != "fp32" or recipe.weights == "fp32":
        return None
    return recipe.replace(gradients=recipe.weights, accumulator=None)


@of_recipe
def _momentum(recipe: Recipe) -> Recipe | None:
    return recipe.replace(optimizer="momentum") if recipe.optimizer == "adamw" else None


@of_recipe
def _sgd(recipe: Recipe) -> Recipe | None:
    return recipe.replace(optimizer="sgd", states=None) if recipe.optimizer != "sgd" else None


MORE = (
    Cause("everything in fp32", OFTEN, "formats", _fp32, DTYPES),
    Cause("AdamW's states in fp32", OFTEN, "states", _states, STATES),
    Cause("an fp32 master copy, updated in fp32", SOMETIMES, "formats", _master, LINES),
    Cause("gradients in fp32", SOMETIMES, "gradients", _gradients, GRADIENTS),
    Cause("no autocast", SOMETIMES, "formats", _autocast, AUTOCAST),
)
LESS = (
    Cause("all in bf16, not fp32", OFTEN, "formats", as_changed("pure bf16"), DTYPES),
    Cause("autocast: products in bf16", OFTEN, "formats", as_changed("autocast"), TRAINER),
    Cause("no fp32 master copy", SOMETIMES, "formats", _no_master, DTYPES),
    Cause("states in the weights' format", SOMETIMES, "states", _narrow_states, STATES),
    Cause("gradients in the weights' format", SOMETIMES, "gradients", _narrow_gradients, GRADIENTS),
    Cause("AdamW's states in few bits", SOMETIMES, "states", as_changed("8-bit states"), STATES),
    Cause(ADAFACTOR, SELDOM, "states", as_changed("Adafactor"), OPTIMIZER),
    Cause("one state: SGD with momentum, Lion", SELDOM, "states", _momentum, OPTIMIZER),
    Cause("no states: plain SGD", SELDOM, "states", _sgd, OPTIMIZER),
)
# What a precision that was said rules out: it may still have been given a copy, or wider states.
BY_PRECISION = (
    *("everything in fp32", "no autocast"),
    *("all in bf16, not fp32", "autocast: products in bf16"),
)
