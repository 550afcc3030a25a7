"""Exercises of small optimizers."""

from ..model import Model
from ..recipe import Recipe
from ..run import Run
from ..terms.low_rank import galore, largest_rank
from ..terms.optimizer import block_state, state
from ..terms.optimizer_step import low_bit_compiled, low_bit_eager
from . import exercise

UP = (14336, 4096)  # a feed-forward matrix of Llama-3-8B
EMBEDDING = (128256, 4096)


def _rise() -> int:
    """The peak not compiled, less the peak compiled."""
    from ..step.simulate import simulate  # only who asks for this answer needs it

    llama, low = Model.preset("llama-3-8b"), Recipe.named("bf16").replace(optimizer="adamw8bit")
    run = Run(batch=1, tokens=8192, checkpoint="block")
    peaks = [
        simulate(llama, low, run.replace(optimizer_impl=how)).peak.bytes
        for how in ("forloop", "compiled")
    ]
    return peaks[0] - peaks[1]


exercise(
    "ex-small-optimizers-1",
    answer=lambda: block_state(UP, stored="int4/128"),
    hint="Half a byte for each value, and four bytes for each block of 128.",
    wrong={
        lambda: 14336 * 4096 // 2: "The scales are missing: four bytes for each block.",
        lambda: 14336 * 4096 + 14336 * 4096 // 32: "Two codes share a byte.",
        lambda: 2 * block_state(UP, stored="int4/128"): "One moment is asked for, not two.",
        lambda: 14336 * 4096 // 2 + 14336 * 4096 // 64: "Blocks have 128 values now, not 256.",
    },
)

exercise(
    "ex-small-optimizers-2",
    answer=_rise,
    hint="Both peaks are in the optimizer's phase, at the embedding. Twice simulate(llama, recipe, "
    'run.replace(optimizer_impl=…)), with "forloop" and with "compiled".',
    wrong={
        lambda: low_bit_eager(EMBEDDING, format="bf16"): "The compiled step has temporaries, too.",
        lambda: (
            low_bit_eager(EMBEDDING) - low_bit_compiled(EMBEDDING)
        ): "A bf16 gradient needs 4 bytes a value more, for its fp32 copy.",
        lambda: 0: "The peak is in the optimizer's phase, so its temporaries count.",
    },
)

exercise(
    "ex-small-optimizers-3",
    answer=lambda: 2048 * 2048 // 2048,
    hint="`absmax1` has one number for each block of `state1`.",
    unit="values",
    wrong={
        lambda: 256: "That is the length of the lookup table, which every block shares.",
        lambda: 2 * 2048: "The two moments have scales of their own.",
        lambda: 2048 * 2048: "That is all the values; `absmax1` has more than one number.",
    },
)

exercise(
    "ex-small-optimizers-4",
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
