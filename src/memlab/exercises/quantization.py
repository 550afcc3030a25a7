"""Exercises of quantization."""

from ..estimate import estimate
from ..formats import storage
from ..model import Model
from ..recipe import Recipe
from ..step.closed.quantized import widening
from . import exercise


def _matrix(name: str) -> int:
    return storage(4096 * 4096, name, row=4096)


exercise(
    "ex-quantization-1",
    answer=lambda: _matrix("int4/128:bf16"),
    hint="Two codes in a byte, and two bytes for every 128 values.",
    wrong={
        lambda: 4096 * 4096 // 2: "Those are the codes; each block has a scale as well.",
        lambda: _matrix("int4/128"): "That is a scale in fp32; here it is in bf16.",
        lambda: _matrix("int8/128:bf16"): "That is a byte for each code; two of 4 bits share one.",
    },
)


def _piece(pieces: int = 16, bits: int = 8) -> int:
    return max(widening(14336, 4096, bits, 1, pieces=pieces))


exercise(
    "ex-quantization-2",
    answer=_piece,
    hint="A sixteenth of the weight in bf16, and the product of its rows, before it is copied.",
    wrong={
        lambda: _piece(pieces=1): "That is the whole weight; it is written out in 16 pieces.",
        lambda: 14336 // 16 * 4096 * 2: "The product of a piece is a tensor too, for a moment.",
        lambda: _piece(bits=4): "A table to look codes up is needed for 4 bits, not for 8.",
        lambda: 14336 // 16 * 4096: "Two bytes a value: written out, the weight is in bf16.",
    },
)

exercise(
    "ex-quantization-3",
    answer=lambda: 2 * storage(14336 * 14336, "fp32"),
    hint="Two matrices [C, C] in fp32.",
    wrong={
        lambda: storage(14336 * 14336, "fp32"): "That is one of the two.",
        lambda: 2 * storage(14336 * 4096, "fp32"): "C by C: how each input goes with each other.",
        lambda: 4 * storage(14336 * 14336, "fp32"): "Four bytes a value, and two matrices.",
    },
)


def _qwen(other: str | None, weights: str = "nf4") -> int:
    recipe = Recipe(weights=weights, other=other, gradients=None)
    return estimate(Model.preset("qwen3-4b"), recipe)["weights"].derived or 0


exercise(
    "ex-quantization-4",
    answer=lambda: _qwen("fp32"),
    hint='The row weights of estimate, with Recipe(weights="nf4", other="fp32", gradients=None).',
    wrong={
        lambda: _qwen("bf16"): "That is the rest in bf16; peft casts it to fp32.",
        lambda: _qwen(None): "Embedding and norms are not quantized.",
        lambda: _qwen("fp32", "int4/128:bf16"): "That is int4; nf4 has an fp32 scale for 64.",
    },
)
