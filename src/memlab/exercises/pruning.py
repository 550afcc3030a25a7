"""Exercises of pruning."""

from ..estimate import estimate
from ..formats import storage
from ..model import Model
from ..terms.sparse import csr, masked
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


exercise(
    "ex-pruning-1",
    answer=lambda: masked(1024 * 1024, format="fp32"),
    hint="The full matrix, a mask of the same format, and their product.",
    wrong={
        lambda: 2 * storage(1024 * 1024, "fp32"): "weight, weight_orig and weight_mask are three.",
        lambda: storage(1024 * 1024, "fp32") * 2 + 1024 * 1024: "The mask is in fp32 as well.",
        lambda: storage(1024 * 1024 // 2, "fp32"): "Nothing has left memory: a zero is a number.",
    },
)

exercise(
    "ex-pruning-2",
    answer=lambda: 151936 * 1024 - (151936 * 64 + 2 * 64 * 1024),
    hint="A mask removes no parameter. V · D before; V · E and two matrices of E · D after.",
    unit="parameters",
    wrong={
        lambda: 9 * 151936 * 1024 // 10: "A zero under a mask is a parameter like any other.",
        lambda: 151936 * (1024 - 64): "The two matrices that project up and down are missing.",
        lambda: 151936 * (1024 - 64) - 64 * 1024: "One matrix projects up, another one down.",
        lambda: 2 * 151936 * (1024 - 64) - 2 * 64 * 1024: "The table is tied: there is one.",
    },
)

exercise(
    "ex-pruning-3",
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
    "ex-pruning-4",
    answer=_saved,
    hint="Three matrices lose half of their values in 36 layers; each value had 2 + 2 + 4 bytes.",
    wrong={
        lambda: _saved() // 4: "Those are the weights alone.",
        lambda: _saved("fp32"): "The recipe is bf16: weights, gradients and states in two bytes.",
    },
)
