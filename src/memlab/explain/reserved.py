"""What PyTorch's allocator reserves beyond what tensors hold, by a replay of a step."""

from __future__ import annotations

from functools import lru_cache

from ..model import Model
from ..recipe import Recipe
from ..run import Run
from ..step.loop import nearest, step_of
from ..step.simulate import simulate

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

# Loops whose micro-batches come one by one: none of their tensors is the larger the more there are.
ONE_BY_ONE = ("plain", "keeps-outputs")
FEW = 5  # micro-batches in which two may be alike that are neither the first, the second nor last


@lru_cache(maxsize=64)
def reserved(model: Model, recipe: Recipe, run: Run) -> int:
    """The peak of what is reserved, less the peak of what is asked for, over two steps.

    Every layer and micro-batch goes through the allocator. Of many micro-batches five are enough
    if the third and the fourth are alike in it, event by event, in what is asked for, allocated
    and reserved: then so are those that would follow, up to the last.

    Unit        bytes
    Source      memlab.terms.replay
    """
    recipe = nearest(recipe, run)
    if run.micro_batches == 1 and run.devices.deepspeed:
        done = step_of(model, recipe, run).replay()  # every layer is in it, as buckets differ
        return int(done.peak_reserved - done.peak_requested)
    if run.micro_batches > FEW and run.loop in ONE_BY_ONE and not run.devices.pipelined:
        few = simulate(model, recipe, run.replace(micro_batches=FEW), every_layer=True)
        done = few.replay()
        if all(_alike(few.log, done, step) for step in ("first", "second")):
            return int(done.peak_reserved - done.peak_requested)
    done = simulate(model, recipe, run, every_layer=True).replay()
    return int(done.peak_reserved - done.peak_requested)


def _alike(log: Any, done: Any, step: str) -> bool:
    """Whether the third micro-batch of a step and the fourth are one to the allocator."""
    places = [0]  # of each event of the log among those that the allocator sees
    for _, change, _ in log.events:
        places.append(places[-1] + bool(change))
    third, fourth, end = (places[log.marks[f"{step}.forward.{number}"]] for number in (3, 4, 5))
    return all(
        series[third:fourth] == series[fourth:end]
        for series in (done.requested, done.allocated, done.reserved)
    )
