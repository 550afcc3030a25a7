"""Exercises of small optimizers."""

from ..model import Model
from ..run import Run
from ..terms.low_rank import galore, largest_rank
from ..terms.optimizer import state
from . import exercise

UP = (14336, 4096)  # a feed-forward matrix of Llama-3-8B


def _fall() -> int:
    from ..step.simulate import simulate  # only who asks for this answer needs it

    qwen = Model.preset("qwen3-4b")
    after = Run(batch=1, tokens=4096, optimizer_impl="fused", checkpoint="block")
    inside = after.replace(step_in_backward=True)
    return simulate(qwen, "bf16", after).peak.bytes - simulate(qwen, "bf16", inside).peak.bytes


exercise(
    "ex-small-optimizers-1",
    answer=lambda: state("muon", shape=UP, formats=("int8/128",)),
    hint="One byte for each value, and four for each block of 128.",
    wrong={
        lambda: 14336 * 4096: "The scales are missing: four bytes for each block.",
        lambda: 2 * state("muon", shape=UP, formats=("int8/128",)): "Muon keeps one momentum.",
        lambda: state("adamw8bit", shape=UP): "That is AdamW: two moments, blocks of 256, tables.",
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
    answer=lambda: largest_rank(UP, bytes=state("adamw8bit", shape=UP), format="bf16"),
    hint="A direction costs (4,096 + 2 · 14,336) · 2 bytes. How many of them does 8-bit AdamW's "
    "state pay for?",
    unit="directions",
    wrong={
        lambda: largest_rank(
            UP, bytes=state("adamw8bit", shape=UP)
        ): "That is in fp32; bf16 is asked for.",
        lambda: largest_rank(
            UP, bytes=state("adamw", shape=UP, format="bf16"), format="bf16"
        ): "That is where GaLore meets AdamW with bf16 states, not the 8-bit one.",
        lambda: (
            state("adamw8bit", shape=UP) // galore((4096, 4096), rank=1, format="bf16")
        ): "The longer side is 14,336.",
    },
)

exercise(
    "ex-small-optimizers-4",
    answer=_fall,
    hint="Twice simulate(qwen, 'bf16', Run(…, checkpoint='block', optimizer_impl='fused')), once "
    "with step_in_backward=True.",
    wrong={
        lambda: 2 * Model.preset("qwen3-4b").parameter_count: "That is all gradients; the peak "
        "falls only to the next hill.",
    },
)
