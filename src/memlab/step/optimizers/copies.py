"""Wider copies beside narrow weights: an fp32 master that is updated, an fp32 sum of gradients.

Source      memlab.lab.precision.Copies, a few lines of ours. Megatron-LM's and DeepSpeed's own
            steps differ in how long a narrow gradient stays: see the page on loops
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from ...recipe import Recipe
from ..core.engine import Engine
from ..core.graph import Parameter
from ..core.storage_log import Record, Storage
from .each import Each, in_order

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

WIDE = "fp32"


def sums_of(recipe: Recipe) -> str:
    """The category of a recipe's fp32 sums of gradients; "" where it has none.

    gradients   the sum is the gradient: each narrow one is dropped as soon as it has been added
    accumulator the narrow gradient stays beside it until the next micro-batch
    """
    if recipe.accumulator:
        return "accumulator"
    return "gradients" if recipe.gradients not in (None, recipe.weights) else ""


def put_beside(engine: Engine, recipe: Recipe) -> None:
    """From here on each trained weight has the copies of the recipe."""
    sums = sums_of(recipe)
    if not (recipe.master or sums):
        return

    def made(p: Parameter) -> None:
        if recipe.master:
            record = Record(p.record.op, p.shape, WIDE, "master", p.record.part)
            p.master = Parameter(p.shape, WIDE, Storage(engine.log, record), p.layer)
        if sums:
            p.sum = Storage(engine.log, Record("sum", p.shape, WIDE, sums, ""))

    engine.copied = made
    engine.drops_narrow = sums == "gradients"


def over(update: Callable[..., Any]) -> Callable[..., Any]:
    """The step of an optimizer whose parameters are the master copies."""
    return partial(_step, update)


def _step(update: Callable[..., Any], engine: Engine, each: Each, loop: str) -> None:
    """Hand over the gradients in fp32, update, and round each master into its weight."""

    def masters() -> Iterator[Parameter]:
        return (p.master for p in each() if p.master is not None)

    for p in each():
        if p.sum is None and p.master is not None:
            p.master.grad = engine.new("to", p.shape, WIDE)
    update(engine, masters, loop)
    for p in masters():
        p.grad = None


def start_micro_batch(engine: Engine, layers: int) -> None:
    """Let the next narrow gradient begin from nothing where the sum has the last one."""
    if engine.copied is not None:
        for p in in_order(engine, layers):
            if p.sum is not None:
                p.grad = None
