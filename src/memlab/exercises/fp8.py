"""Exercises of FP8."""

from ..model import Model
from ..terms import fp8
from . import exercise


def _down(keep: str, scaling: str = "tensor") -> int:
    m = Model.preset("llama-3-8b")
    return fp8.linear(4096, inputs=m.d_ff, outputs=m.d_model, keep=keep, scaling=scaling)


def _rows() -> int:
    m = Model.preset("qwen3-4b")
    return fp8.break_even(m.d_model, outputs=m.d_ff)


def _out(tokens: int = 8192) -> int:
    m = Model.preset("llama-3-8b")
    return m.layers * fp8.linear(tokens, inputs=m.heads * m.head_dim, outputs=m.d_model)


exercise(
    "ex-fp8-1",
    answer=lambda: _down("fp8"),
    hint="A byte for each of T · C values, and one fp32 scale.",
    wrong={
        lambda: _down("original"): "That is the input in bf16.",
        lambda: _down("fp8") - 4: "Without its scale nobody can read the copy.",
        lambda: _down("fp8+weight"): "The weight is kept in bf16 alone here.",
        lambda: 4096 * 4096 + 4: "The input has 14,336 columns; the output is not kept.",
    },
)

exercise(
    "ex-fp8-2",
    answer=lambda: _down("fp8+weight", "row"),
    hint="(T + O) · C, and for each of the two copies one scale of four bytes for each input.",
    wrong={
        lambda: _down("fp8+weight"): "That is one scale for each copy; here there are C.",
        lambda: _down("fp8", "row"): "The weight's copy is kept as well.",
        lambda: _down("fp8+weight", "row") - 4 * 14336: "Each of the two copies has its scales.",
        lambda: (4096 + 4096) * 14336 + 4 * (4096 + 4096): (
            "Backward adds up along T and along O: the scales left are those of the C inputs."
        ),
    },
)

exercise(
    "ex-fp8-3",
    answer=lambda: -(-_rows() // 8),
    hint="The first T above O = 9,728, in eight equal parts.",
    unit="tokens",
    wrong={
        _rows: "Those are the rows of the whole batch; eight sequences share them.",
        lambda: 9728 // 8: "There the two are alike, but for the scales: one token more.",
        lambda: -(-(2560 + 1) // 8): "The outputs decide: O = 9,728.",
    },
)

exercise(
    "ex-fp8-4",
    answer=_out,
    hint="What goes is the FP8 copy of the input of `out`, [8192, 4096] and a scale, in 32 layers.",
    wrong={
        lambda: 2 * 32 * 8192 * 4096: "The bf16 tensor stays: attention keeps it. The copy goes.",
        lambda: _out() // 32: "That is one layer of 32.",
        lambda: _out() - 4 * 32: "Each copy has a scale of four bytes.",
    },
)
