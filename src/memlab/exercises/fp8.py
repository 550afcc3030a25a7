"""Exercises of FP8."""

from ..model import Model
from ..terms import fp8
from . import exercise


def _by_row(scaling: str = "row", keep: str = "fp8") -> int:
    return fp8.linear(1024, inputs=512, outputs=256, keep=keep, scaling=scaling)


def _rows() -> int:
    m = Model.preset("qwen3-4b")
    return fp8.break_even(m.d_model, outputs=m.d_ff)


def _out(tokens: int = 8192) -> int:
    m = Model.preset("llama-3-8b")
    return m.layers * fp8.linear(tokens, inputs=m.heads * m.head_dim, outputs=m.d_model)


exercise(
    "ex-fp8-1",
    answer=_by_row,
    hint="A byte for each of T · C values, and a scale of four bytes for each of the C inputs.",
    wrong={
        lambda: _by_row("tensor"): "That is one scale for the tensor; by row there are C.",
        lambda: _by_row("tensor") - 4: "Without its scales nobody can read the copy.",
        lambda: _by_row() - 4 * 512 + 4 * 1024: (
            "Those scales belong to the copy of the forward pass. The one that is kept adds up "
            "along T, so its scales are those of the C inputs."
        ),
        lambda: 2 * _by_row() - 4 * 512 + 4 * 1024: (
            "That is both copies; the one of the forward pass is not needed in backward."
        ),
        lambda: _by_row("row", "fp8+weight"): "No copy of the weight is kept here.",
        lambda: _by_row("row", "original"): "That is the input in bf16.",
    },
)

exercise(
    "ex-fp8-2",
    answer=_out,
    hint="What goes is the FP8 copy of the input of `out`, [8192, 4096] and a scale, in 32 layers.",
    wrong={
        lambda: 2 * 32 * 8192 * 4096: "The bf16 tensor stays: attention keeps it. The copy goes.",
        lambda: _out() // 32: "That is one layer of 32.",
        lambda: _out() - 4 * 32: "Each copy has a scale of four bytes.",
    },
)

exercise(
    "ex-fp8-3",
    answer=lambda: 2 * 14336 * 4096,
    hint="With no rows at all only the copies of the weight are left: [14336, 4096], twice.",
    wrong={
        lambda: 14336 * 4096: "That is the left end of the line of one copy.",
        lambda: 4 * 14336 * 4096: "A value of an FP8 copy takes one byte, not two.",
        lambda: 2 * 14336 * 4096 + 12: "Scales apart: the three of them are 12 bytes.",
        lambda: 112: "That is its height in MiB; the question asks for bytes.",
    },
)

exercise(
    "ex-fp8-4",
    answer=lambda: -(-_rows() // 8),
    hint="The first T above O = 9,728, in eight equal parts.",
    unit="tokens",
    wrong={
        _rows: "Those are the rows of the whole batch; eight sequences share them.",
        lambda: 9728 // 8: "There the two are alike, but for the scales: one token more.",
        lambda: -(-(2560 + 1) // 8): "The outputs decide: O = 9,728.",
    },
)
