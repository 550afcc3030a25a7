"""Exercises of chapter 10, the step and its peak."""

from typing import Any

from ..fit import limit_of
from ..model import Model
from ..run import Run
from ..step import Step, simulate
from ..step.moments import hills
from ..units import GB, GiB
from . import exercise

BEFORE = {"forward": 40, "loss": 52, "backward": 47, "optimizer": 50}
AFTER = {**BEFORE, "loss": 52 - 6, "optimizer": 50 - 8}
PARTS = (1, 2, 4, 8, 16, 32)


def _llama(**how: Any) -> Step:
    gpu = Run(batch=1, tokens=8192)
    return simulate(Model.preset("llama-3-8b"), "bf16", gpu.replace(**how))


def _loss(step: Step, without: str = "") -> int:
    """The hill of the loss, without one of its rows."""
    return sum(row.derived or 0 for row in hills(step)["loss"].rows if row.term != without)


def _gradients() -> int:
    return _llama().rows["gradients"]


def _smallest(gradients: bool = True, room: int | None = None) -> int:
    """The fewest micro-batches of 32 sequences of 512 tokens whose loss fits on the H100."""
    room = limit_of("H100 80GB")[0] if room is None else room
    for parts in PARTS:
        summed = parts if gradients else 1
        how = {"tokens": 512, "optimizer_impl": "fused", "micro_batches": summed}
        if _loss(_llama(batch=32 // parts, **how)) <= room:
            return parts
    raise AssertionError("none fits")


exercise(
    "ex-step-1",
    answer=lambda: (max(BEFORE.values()) - max(AFTER.values())) * GiB,
    hint="Write down the four hills after both savings. Which is the highest now?",
    wrong={
        lambda: 14 * GiB: "Two savings at two moments do not add up.",
        lambda: 6 * GiB: "The loss sinks to 46 GiB; another hill is higher than that.",
        lambda: 8 * GiB: "That is freed in the optimizer, whose hill was not the peak.",
        lambda: 2 * GiB: "The optimizer's hill, at 50 GiB, has sunk as well.",
        lambda: 47 * GiB: "That is the new peak. By how much did it fall?",
    },
)

exercise(
    "ex-step-2",
    answer=lambda: _llama().peak.bytes,
    hint="The second step has the same hills, on higher ground: what did the first one create in "
    "its last line?",
    wrong={
        lambda: (
            _llama().peak.first_step_bytes
        ): "That is the first step again. The second one finds optimizer states in memory.",
        lambda: _llama().peak.first_step_bytes + _gradients(): "Gradients are freed by "
        "`zero_grad()` before the second forward pass. What is never freed?",
        lambda: _llama().rows["optimizer"]: "That is what comes to the ground; add the first "
        "step's peak.",
        lambda: _llama().peak.bytes + _gradients(): "Gradients do not exist yet at the loss.",
    },
)

exercise(
    "ex-step-3",
    answer=_gradients,
    hint="Which row is in memory during the forward pass now, and was not before?",
    wrong={
        lambda: 2 * _gradients(): "Gradients are in bf16: two bytes for each parameter.",
        lambda: _llama().rows["optimizer"]: "Those are the states, which stay in either program.",
        lambda: 0: "`set_to_none=False` fills the gradients with zeros and keeps them in memory.",
        lambda: (
            _llama().peak.bytes + _gradients()
        ): "That is the new peak. By how much did it rise?",
    },
)

exercise(
    "ex-step-4",
    answer=_smallest,
    hint="For each number k: the hill of the loss of 32 / k sequences, and the gradients under it.",
    unit="micro-batches",
    wrong={
        lambda: _smallest(gradients=False): "From the second micro-batch on, gradients are there.",
        lambda: _smallest(room=80 * GB - 5 * GiB): "That fits, but half as many do as well.",
        lambda: 1: "In one batch the hill of the loss is more than twice as high as the card.",
    },
)
