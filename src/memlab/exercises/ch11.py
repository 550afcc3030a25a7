"""The exercises of chapter 11, watching a run."""

from functools import cache

from ..model import Model
from ..run import Run
from ..step import simulate
from ..units import GiB
from . import exercise


@cache
def _stranger() -> dict[str, int]:
    """Qwen3-4B between two steps: the fields of memory_stats that the exercise shows."""
    run = Run(batch=4, tokens=2048)
    step = simulate(Model.preset("qwen3-4b"), "bf16", run, every_layer=True)
    end = step.replay().allocator
    mixed = [blocks for _, blocks in end.segments() if len(blocks) > 1]
    return {
        "requested": end.requested,
        "allocated": end.allocated,
        "reserved": end.reserved,
        "stuck": sum(b.size for blocks in mixed for b in blocks if b.ident is None),
    }


def _less(first: str, *others: str) -> int:
    found = _stranger()
    return found[first] - sum(found[name] for name in others)


def _tiny(what: str) -> int:
    tiny = Model.preset("tiny-llama")
    step = simulate(tiny, "fp32", Run.cpu(batch=8, tokens=128, implementation="memlab"))
    rows = step.rows
    there = rows["weights"] + rows["buffers"] + 8 * 128 * 8  # the batch is int64
    figures = {
        "second": step.peak.bytes - step.held["between_steps"],
        "tracker": step.peak.bytes,
        "both": step.peak.bytes - there,
        "first": step.peak.first_step_bytes,
        "gradients": step.peak.bytes - step.held["after_backward"],
    }
    return figures[what]


@cache
def _llama(what: str) -> int:
    """Whole GiB that a step of Llama-3-8B needs, allocates and reserves, rounded up."""
    llama = Model.preset("llama-3-8b")
    step = simulate(llama, "bf16", Run(batch=1, tokens=2048), every_layer=True)
    if what != "least":
        return -(-getattr(step.replay(), what) // GiB)
    low = _llama("peak_allocated")  # less cannot be enough
    return next(size for size in range(low, 1024) if step.replay(size * GiB).fits)


exercise(
    "ex-watching-1",
    answer=lambda: _less("allocated", "requested"),
    hint="Blocks in use are allocated; what tensors asked for is requested.",
    wrong={
        lambda: _less("reserved", "allocated"): "Those bytes are free. Blocks in use are asked "
        "for: what is it in them that no tensor wanted?",
        lambda: _less("reserved", "requested"): "That is two rungs at once. Free blocks are not "
        "in use.",
        lambda: _stranger()["stuck"]: "Those are free blocks beside blocks in use.",
    },
)

exercise(
    "ex-watching-2",
    answer=lambda: _less("reserved", "allocated", "stuck"),
    hint="All that is free, less the free blocks that share a segment with a block in use.",
    wrong={
        lambda: _less("reserved", "allocated"): "So much is free. But a free block beside one in "
        "use cannot go back to the driver.",
        lambda: _less("reserved", "requested"): "Ends and rounding belong to blocks in use; they "
        "stay.",
        lambda: _stranger()["stuck"]: "Those are the ones that cannot go back.",
        lambda: _stranger()["allocated"] + _stranger()["stuck"]: "That is what stays. The question "
        "is what goes.",
        lambda: _less("reserved", "requested", "stuck"): "Nearly: the blocks in use are larger "
        "than what was asked for, and stay as a whole.",
    },
)

exercise(
    "ex-watching-3",
    answer=lambda: _tiny("second"),
    hint="The peak of the second step, less all that was there when the profiler began.",
    wrong={
        lambda: _tiny("tracker"): "So says a tracker that knows of the weights. The profiler "
        "counts only what it hears coming.",
        lambda: _tiny("both"): "So it is if it listens from before the first step. Now optimizer "
        "states are there as well when it begins.",
        lambda: _tiny("first"): "That is the peak of the first step, as a tracker counts it.",
        lambda: _tiny("gradients"): "Between two steps there are no gradients: zero_grad let go of "
        "them.",
    },
)

exercise(
    "ex-watching-4",
    answer=lambda: _llama("least"),
    hint="Try whole numbers of GiB from below: the first with big.replay(size * 2**30).fits.",
    unit="GiB",
    wrong={
        lambda: _llama("peak_allocated"): "All its blocks would fit by size; but holes between "
        "them are too small for the next tensor. Try it with big.replay.",
        lambda: _llama("peak_reserved"): "With so much nothing is ever given back. Try less: a "
        "full allocator empties its cache and asks again.",
        lambda: _llama("least") - 1: "Nearly: with one GiB less a tensor finds no gap that is "
        "large enough. Try it with big.replay.",
    },
)
