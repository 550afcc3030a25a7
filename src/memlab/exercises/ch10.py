"""Exercises of chapter 10, the step and its peak."""

from typing import Any

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
    gpu = Run(batch=1, tokens=4096, optimizer_impl="foreach")
    return simulate(Model.preset("llama-3-8b"), "bf16", gpu.replace(**how))


def _loss(step: Step, without: str = "") -> int:
    """The hill of the loss, without one of its rows."""
    return sum(row.derived or 0 for row in hills(step)["loss"].rows if row.term != without)


def _lean(**how: Any) -> Step:
    return _llama(checkpoint="block", optimizer_impl="fused", **how)


def _smallest(gradients: bool) -> int:
    """The fewest micro-batches of 32 texts of 512 tokens whose loss fits below 80 GB."""
    for parts in PARTS:
        summed = parts if gradients else 1
        how = {"tokens": 512, "optimizer_impl": "fused", "micro_batches": summed}
        if _loss(_llama(batch=32 // parts, **how)) <= 80 * GB:
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
    answer=lambda: _loss(_llama(), without="optimizer"),
    hint="The same rows as in the second step, but for one that is made in the step's last line.",
    wrong={
        lambda: _loss(_llama()): "That is the second step. What does the first not have yet?",
        lambda: _loss(_llama(), without="weights"): "The weights are there from the beginning.",
        lambda: _llama().peak.first_step_bytes: (
            "That is the peak of the first step, and it is in the optimizer."
        ),
    },
)

exercise(
    "ex-step-3",
    answer=lambda: _loss(_lean(micro_batches=4)),
    hint="The hill of the loss of one text, and one row that is there since the text before.",
    wrong={
        lambda: _loss(_lean()): "That is the first text; from the second on, gradients are there.",
        lambda: _loss(_lean()) + 3 * _lean().rows["gradients"]: (
            "Gradients of several texts are summed in one place."
        ),
        lambda: _loss(_llama(micro_batches=4)): "Every layer is checkpointed here.",
    },
)

exercise(
    "ex-step-4",
    answer=lambda: _smallest(gradients=True),
    hint="For each number k: the hill of the loss of 32 / k texts, and the gradients under it.",
    unit="micro-batches",
    wrong={
        lambda: _smallest(gradients=False): "From the second micro-batch on, gradients are there.",
        lambda: 1: "In one batch the hill of the loss is more than twice as high as the card.",
    },
)
