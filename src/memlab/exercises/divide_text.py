"""Exercises of ranks that share a text."""

from ..model import Model
from ..run import Run
from ..step import simulate
from ..terms.divided_text import buffers
from ..units import GiB
from . import exercise

_LLAMA = Model.preset("llama-3.1-8b")
_TOKENS = 131072


def _ring(ranks: int) -> int:
    """Two pieces of keys and values."""
    return buffers(
        1,
        tokens=_TOKENS,
        heads=_LLAMA.heads,
        kv_heads=_LLAMA.kv_heads,
        head_dim=_LLAMA.head_dim,
        ranks=ranks,
        way="ring",
    )


def _own() -> int:
    """Keys and values of a rank's own tokens in one layer: 16 ranks, 65,536 tokens."""
    return 2 * (65536 // 16) * _LLAMA.kv_heads * _LLAMA.head_dim * 2


def _ranks(most: int = 24 * GiB) -> int:
    model, ranks = Model.preset("qwen3-4b"), 1
    while simulate(model, "bf16", Run(tokens=32768 // ranks)).rows["activations"] > most:
        ranks *= 2
    return ranks


exercise(
    "ex-divide-text-1",
    answer=lambda: 2 * 8 + 1,
    hint="Chunk number i, counted from 0, meets the chunks 0 to i: i + 1 of them. A rank has the "
    "chunks r and 2c - 1 - r.",
    unit="chunks",
    wrong={
        lambda: 8: "That is the busiest rank of a plain ring, in pieces twice as long.",
        lambda: 16: "That is what the last chunk alone uses; its rank has a second one.",
        lambda: 31: "That would be a rank with the last two chunks. Zig-zag gives it one of them.",
    },
)

exercise(
    "ex-divide-text-2",
    answer=lambda: 2 * _TOKENS * _LLAMA.head_dim * 2,
    hint="Keys and values, all tokens, one head of width 128, two bytes each.",
    wrong={
        lambda: _ring(16) // 2: "That is a ring's piece. Here a rank has one head of all tokens.",
    },
)

exercise(
    "ex-divide-text-3",
    answer=lambda: 32 * 15 * _own(),
    hint="Each layer keeps the pieces of all 16 ranks. How many of them are not its own?",
    wrong={
        lambda: 32 * 16 * _own(): "One of the 16 pieces it has to keep anyway.",
        lambda: 15 * _own(): "That is one layer.",
    },
)

exercise(
    "ex-divide-text-4",
    answer=_ranks,
    hint="Ask simulate what a text of 32768 // ranks tokens saves: its row activations.",
    unit="ranks",
)
