"""The exercises of the chapter on watching a run."""

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
def _llama(checkpoint: str, optimizer: str = "foreach") -> int:
    """Whole GiB at the peak of Llama-3-8B with 8,192 tokens on a GPU, rounded up."""
    run = Run(tokens=8192, checkpoint=checkpoint, optimizer_impl=optimizer)
    return -(-simulate(Model.preset("llama-3-8b"), "bf16", run).peak.bytes // GiB)


exercise(
    "ex-watching-1",
    answer=lambda: _less("allocated", "requested"),
    hint="Blocks in use are allocated; what tensors wanted is requested.",
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
        "than what was requested, and stay as a whole.",
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
    answer=lambda: _llama("block", "fused"),
    hint="Ask for `.phase`: in which line of the script is the peak? Look up what that optimizer "
    "may be told when it is made.",
    unit="GiB",
    wrong={
        lambda: _llama("block"): "So much it takes as it is, however short the text: the peak is "
        "in the optimizer, which makes temporaries as large as the weights.",
        lambda: _llama("none"): "That is the script of the first page, before any change.",
        lambda: _llama(
            "block", "forloop"
        ): "It fits with that. Another argument of AdamW takes its temporaries away altogether.",
        lambda: _llama("block", "fused") - 1: "Nearly: round up.",
    },
)
