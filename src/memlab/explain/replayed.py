"""What a replay in PyTorch's allocator reserves of a step on a card, for memlab.verdict."""

from __future__ import annotations

from ..model import Model
from ..recipe import Recipe
from ..run import Run
from ..step.loop import nearest, step_of
from ..step.simulate import simulate

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

REPLAYED = 1024  # layers times micro-batches that are replayed one by one; more take too long


def reserved_on(model: Model, recipe: Recipe, run: Run, room: int) -> int | None:
    """Bytes that the allocator reserves at most, of a card that leaves it `room` bytes.

    Returns     what it reserves where it gives unused blocks back rather than fail; if it fails all
                the same, what it would reserve on a card without end. None: not replayed
    Leaves out  streams: blocks of one rank are replayed as if there were a single one
    Source      memlab.terms.replay
    """
    few = model.layers * run.micro_batches <= REPLAYED
    if run.backend != "cuda" or run.tokens is None or run.holds or not few:
        return None
    try:
        step = _step(model, nearest(recipe, run), run)
        done = step.replay()
    except ValueError:  # not described tensor by tensor
        return None
    if done.peak_reserved > room:
        limited = step.replay(room)
        done = limited if limited.fits else done
    return int(done.peak_reserved)


def _step(model: Model, recipe: Recipe, run: Run) -> Any:
    if run.phase != "train":
        from ..step import calls  # only who asks about a call needs it

        call = calls.prefill if run.phase == "prefill" else calls.decode
        return call(model, recipe, run, every_layer=True)
    if run.micro_batches == 1 and run.devices.deepspeed:
        return step_of(model, recipe, run)  # every layer is in it, as buckets differ
    return simulate(model, recipe, run, every_layer=True)
