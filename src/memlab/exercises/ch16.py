"""Exercises of chapter 16, small optimizers."""

from ..model import Model
from ..terms.low_rank import galore, largest_rank
from ..terms.optimizer import state
from . import exercise

UP = (14336, 4096)  # a feed-forward matrix of Llama-3-8B


def _fall() -> int:
    from ..step.simulate import simulate  # only who asks for this answer needs it

    peaks = [
        simulate(
            Model.preset("qwen3-4b"),
            "bf16",
            batch=1,
            tokens=4096,
            backend="cuda",
            optimizer_impl="fused",
            checkpoint="block",
            step_in_backward=inside,
        ).peak.bytes
        for inside in (False, True)
    ]
    return peaks[0] - peaks[1]


exercise(
    "ex-small-optimizers-1",
    answer=lambda: state("muon", UP, formats=("int8/128",)),
    hint="One byte for each value, and four for each block of 128.",
    wrong={
        lambda: 14336 * 4096: "The scales are missing: four bytes for each block.",
        lambda: 2 * state("muon", UP, formats=("int8/128",)): "Muon keeps one momentum.",
        lambda: state("adamw8bit", UP): "That is AdamW: two moments, blocks of 256, tables.",
        lambda: 14336 * 4096 + 14336 * 4096 // 128 * 2: "A scale is in fp32 here: four bytes.",
    },
)

exercise(
    "ex-small-optimizers-2",
    answer=lambda: 4 * 60 * 64,
    hint="How many values are these, and from how many on does anything change?",
    wrong={
        lambda: 60 * 64 + 4 * 30: "3,840 values are fewer than 4,096.",
        lambda: 60 * 64: "3,840 values are fewer than 4,096.",
        lambda: 2 * 4 * 60 * 64: "Muon keeps one momentum, AdamW two.",
    },
)

exercise(
    "ex-small-optimizers-3",
    answer=lambda: largest_rank(UP, state("adamw8bit", UP), "bf16"),
    hint="A direction costs (4,096 + 2 · 14,336) · 2 bytes. How many of them does 8-bit AdamW's "
    "state pay for?",
    unit="directions",
    wrong={
        lambda: largest_rank(UP, state("adamw8bit", UP)): "That is in fp32; bf16 is asked for.",
        lambda: largest_rank(UP, state("adamw", UP, "bf16"), "bf16"): "That is where GaLore meets "
        "AdamW with bf16 states, not the 8-bit one.",
        lambda: state("adamw8bit", UP) // galore((4096, 4096), 1, "bf16"): "The longer side is "
        "14,336.",
    },
)

exercise(
    "ex-small-optimizers-4",
    answer=_fall,
    hint="Twice simulate(qwen, 'bf16', …, checkpoint='block', optimizer_impl='fused'), once with "
    "step_in_backward=True.",
    wrong={
        lambda: 2 * Model.preset("qwen3-4b").parameter_count: "That is all gradients; the peak "
        "falls only to the next hill.",
    },
)
