"""Exercises of pruning."""

from ..estimate import estimate
from ..formats import storage
from ..model import Model
from ..terms.sparse import csr
from . import exercise


def _rows(share: float = 0.6, index_bytes: int = 4) -> int:
    m = Model.preset("llama-3-8b")
    left = m.d_ff * m.d_model - round(share * m.d_ff * m.d_model)
    wide = csr(m.d_ff, nonzero=left, format="bf16", index_bytes=index_bytes)
    return m.layers * (
        2 * wide + csr(m.d_model, nonzero=left, format="bf16", index_bytes=index_bytes)
    )


def _dense() -> int:
    m = Model.preset("llama-3-8b")
    return m.layers * 3 * storage(m.d_ff * m.d_model, "bf16")


def _saved(recipe: str = "bf16") -> int:
    m = Model.preset("qwen3-4b")
    half = m.replace(d_ff=m.d_ff // 2)
    return estimate(m, recipe).total("derived") - estimate(half, recipe).total("derived")


LEFT = 4096 * 4096 - 15_099_494

exercise(
    "ex-pruning-1",
    answer=lambda: 2 * LEFT + 4096 * 4096 // 8,
    hint="Two bytes for each value that is left, and a bit for each place, zero or not.",
    wrong={
        lambda: 2 * LEFT: "Without the bits nobody knows where the values belong.",
        lambda: 2 * LEFT + 4096 * 4096: "That is a byte for each place; eight places share one.",
        lambda: 2 * LEFT + LEFT // 8: "A zero needs its bit as well.",
        lambda: csr(4096, nonzero=LEFT, format="bf16", index_bytes=4): "Those are compressed rows.",
    },
)

exercise(
    "ex-pruning-2",
    answer=lambda: _rows() - _dense(),
    hint="csr of two matrices [F, D] and one [D, F], less three dense ones, in 32 layers.",
    wrong={
        lambda: _rows(): "That is what the three take now. By how much did they grow?",
        lambda: _rows(0.4) - _dense(): "60 per cent go, 40 per cent stay.",
        lambda: _rows(index_bytes=8) - _dense(): "The indices have 4 bytes here.",
        lambda: (_rows() - _dense()) // 32: "That is one layer of 32.",
    },
)

exercise(
    "ex-pruning-3",
    answer=lambda: 70,
    hint="The column *of dense* says it: below 1.",
    unit="per cent",
    wrong={
        lambda: 50: "With half of the values gone the rows still take as much as the matrices.",
        lambda: 90: "That is smaller; a share above it in the table is smaller, too.",
    },
)

exercise(
    "ex-pruning-4",
    answer=_saved,
    hint="Three matrices lose half of their values in 36 layers; each value had 2 + 2 + 4 bytes.",
    wrong={
        lambda: _saved() // 4: "Those are the weights alone.",
        lambda: _saved("fp32"): "The recipe is bf16: weights, gradients and states in two bytes.",
    },
)
