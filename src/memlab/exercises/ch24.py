"""Exercises of chapter 24, predicted 28 GB, observed 80."""

from functools import partial

from ..formats import storage
from ..model import Model
from ..run import Run
from ..step import simulate
from . import exercise

ROUND = 4_000_000_000
QWEN = "qwen3-4b"


def _kept(packed: str = "fp4_e2m1/16:fp8_e4m3", rest: int = 2 + 2 + 1 + 1) -> int:
    return storage(ROUND, packed) + rest * ROUND


def _states(value_bytes: int = 2, states: int = 2) -> int:
    return states * value_bytes * Model.preset(QWEN).parameter_count


def _rounded(value_bytes: int = 2, whole_model: bool = False) -> int:
    parts = Model.preset(QWEN).parameters()
    values = sum(parts.values()) if whole_model else parts["attention"] + parts["feed_forward"]
    return value_bytes * values


def _tokens(room: int = 20 * 10**9, recipe: str = "bf16") -> int:
    run = Run.cpu(batch=1, tokens=96, implementation="memlab")
    each = simulate(Model.preset(QWEN), recipe, run).rows["activations"] // 96
    return room // each + 1


exercise(
    "ex-predicted-28-1",
    answer=_kept,
    hint="Half a byte a code, one byte of scale for 16 of them; then 2 + 2 + 1 + 1.",
    wrong={
        lambda: ROUND * 13 // 2: "That is the note's 6.5: sixteen codes share a scale of one byte.",
        partial(_kept, rest=2 + 1 + 1): "Master and gradients are two copies.",
        partial(_kept, rest=2 + 2 + 4 + 4): "The states take one byte each here.",
    },
)

exercise(
    "ex-predicted-28-2",
    answer=_states,
    hint="Adam keeps two states, each in the format of its parameter.",
    wrong={
        partial(_states, 4): "The parameters are in bf16, and so are the states.",
        partial(_states, 2, 1): "Two states of two bytes each, a mean and a mean of squares.",
    },
)

exercise(
    "ex-predicted-28-3",
    answer=_rounded,
    hint="One bf16 value for each weight of attention and feed-forward; the rest is not rounded.",
    wrong={
        partial(_rounded, 2, True): "Embedding, head and norms are not rounded.",
        partial(_rounded, 4): "What is kept has the format of the master, bf16.",
        lambda: storage(_rounded(1), "fp4_e2m1/16:fp8_e4m3"): "Written out, not as codes.",
    },
)

exercise(
    "ex-predicted-28-4",
    answer=_tokens,
    unit="tokens",
    hint="With this attention, activations grow with the tokens: divide what 96 of them take.",
    wrong={
        lambda: _tokens() - 1: "That many still fit below 20 GB: one more.",
        partial(_tokens, 20 * 2**30): "20 GB are 20,000,000,000 bytes.",
        partial(_tokens, recipe="fp32"): "The pass is in bf16.",
    },
)
