"""What PyTorch's caching allocator makes of a step or of a call: its whole log, replayed."""

from __future__ import annotations

from functools import lru_cache

from ...base.frozen import dataclass
from ...model import Model
from ...recipe import Recipe
from ...run import Run
from ...terms.replay import replay
from ..loops.loop import apart, nearest, sizes_of, step_of
from ..simulate import simulate

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

# Loops whose micro-batches come one by one: none of their tensors is the larger the more there are.
ONE_BY_ONE = ("plain", "keeps-outputs")
REPLAYED = 1024  # layers times micro-batches that are replayed one by one; more take too long
FEW = 5  # micro-batches in which two may be alike that are neither the first, the second nor last


@dataclass(frozen=True)
class Replayed:
    """The most bytes of both steps at each level of the allocator.

    requested   by tensors
    allocated   blocks that they got, in multiples of 512
    reserved    segments that hold the blocks, what a card has to have
    """

    requested: int
    allocated: int
    reserved: int

    @property
    def added(self) -> int:
        """What is reserved beyond what is asked for, each at its own highest moment."""
        return self.reserved - self.requested


@lru_cache(maxsize=64)
def replayed(model: Model, recipe: Recipe, run: Run) -> Replayed:
    """What the allocator of one device holds over two steps, or over a call.

    Every layer and micro-batch goes through the allocator. Of many micro-batches five are enough
    if the third and the fourth are alike in it, event by event, in what is asked for, allocated
    and reserved: then so are those that would follow, up to the last.

    Held        what the program's loop holds beside the step (`Run.holds`) is there all along
    Several     the rank that holds most, by its own log; under FSDP2 each of its streams has its
                own free blocks. DDP's, DeepSpeed's and a pipeline's are replayed on one stream
    Unit        bytes
    Source      memlab.terms.replay
    Leaves out  record_stream, after which a block comes back late; buffers of the communication
                library, cuBLAS's workspaces, scratch memory inside one kernel
    Raises      ValueError for a step that is not described
    """
    if run.phase == "train" and (told := apart(run))[1]:
        bare, beside = told
        made = nearest(recipe, run)
        step = simulate(model, made, bare, every_layer=True)
        return _most(replay(_held(step, model, made, bare, beside)))
    if run.micro_batches > FEW and run.loop in ONE_BY_ONE and not run.devices.pipelined:
        few = _whole(model, recipe, run.replace(micro_batches=FEW))
        done = few.replay()
        if all(_alike(few.log, done, step) for step in ("first", "second")):
            return _most(done)
    return _most(_whole(model, recipe, run).replay())


def reserved_on(model: Model, recipe: Recipe, run: Run, capacity: int) -> int | None:
    """Bytes that the allocator reserves of a card that leaves it so many.

    Returns     what it reserves where it gives unused blocks back rather than fail; if it fails all
                the same, what it would reserve on a card without end. None: not replayed
    Source      `replayed`, and what it leaves out
    """
    if run.backend != "cuda" or run.tokens is None or run.holds:
        return None
    if model.layers * run.micro_batches > REPLAYED:
        return None
    try:
        reserved = replayed(model, recipe, run).reserved
        if reserved <= capacity:
            return reserved
        done = _whole(model, recipe, run).replay(capacity)
    except ValueError:  # not described tensor by tensor
        return None
    return int(done.peak_reserved) if done.fits else reserved


@lru_cache(maxsize=1)  # what is replayed without end is replayed on a card next
def _whole(model: Model, recipe: Recipe, run: Run) -> Any:
    """The step or the call with every layer in its log."""
    if run.phase != "train":
        from .. import calls  # only who asks about one needs it

        call = calls.prefill if run.phase == "prefill" else calls.decode
        return call(model, recipe, run, every_layer=True)
    recipe = nearest(recipe, run)
    if run.micro_batches == 1 and run.devices.deepspeed:
        return step_of(model, recipe, run)  # every layer is in it: buckets differ
    return simulate(model, recipe, run, every_layer=True)


def _held(
    step: Any, model: Model, recipe: Recipe, run: Run, beside: tuple[str, ...]
) -> list[tuple[str, Any, int]]:
    """The events of a step among what its loop holds, which is there before the first of them.

    gradients   are let go of in no step, and the second one adds to those of the first
    Raises      ValueError for what no log of memlab has: memlab's own logits
    """
    log, second = step.log, step.log.marks["second.forward"]
    kept = ("gradients",) if "gradients" in beside else ()
    events: list[tuple[str, Any, int]] = []
    for what in beside:
        sizes = [] if what in kept else sizes_of(what, step, model, recipe, run)
        events += [("alloc", (what, len(events) + place), n) for place, n in enumerate(sizes)]
    for index, (record, change, _) in enumerate(log.events):
        if change and not (record.category in kept and (change < 0 or index >= second)):
            events.append(("alloc" if change > 0 else "free", id(record), abs(change)))
    return events


def _most(done: Any) -> Replayed:
    return Replayed(done.peak_requested, done.peak_allocated, done.peak_reserved)


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
