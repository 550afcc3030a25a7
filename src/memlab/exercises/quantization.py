"""Exercises of quantization."""

from ..formats import storage
from . import exercise

_VALUES = 4096 * 4096


def _matrix(name: str) -> int:
    return storage(_VALUES, name, row=4096)


exercise(
    "ex-quantization-1",
    answer=lambda: _matrix("int4/128:bf16+bf16"),
    hint="Two codes in a byte, and two numbers of two bytes for every 128 values.",
    wrong={
        lambda: _VALUES // 2: "Those are the codes; each block has two numbers as well.",
        lambda: _matrix("int4/128:bf16"): "That is one number for a block; here there are two.",
        lambda: _VALUES // 2 + _VALUES // 128 * 8: "Smallest value and step are in bf16, not fp32.",
        lambda: _VALUES + _VALUES // 128 * 4: "A code has 4 bits; two of them share a byte.",
    },
)


def _qat(tokens: int) -> int:
    """A layer [256, 512] with fake quantization in blocks of 32, stored for backward."""
    weights = 256 * 512
    return tokens * 512 * 2 + 6 * weights + 2 * weights // 32 * 4


exercise(
    "ex-quantization-2",
    answer=lambda: _qat(4096),
    hint="Which of the stored tensors have a dimension that counts tokens?",
    wrong={
        lambda: 4 * _qat(1024): "Only the input grows with the tokens; the weight's copies do not.",
        lambda: _qat(1024): "The input is among what is stored, and it is four times as long.",
        lambda: 4096 * 512 * 2: "That is the input, all that bf16 stores; QAT adds its copies.",
    },
)

exercise(
    "ex-quantization-3",
    answer=lambda: 2048 * 1024 + 2048 * (4 + 1) + 2 * 2048 * 1024,
    hint="Add two columns of that row: what is stored, and what is extra for one token.",
    wrong={
        lambda: 2048 * 1024 + 2048 * (4 + 1): "That is what is stored between two calls.",
        lambda: 2 * 2048 * 1024: "That is the dequantized weight; the codes are still there.",
        lambda: 2 * 2048 * 1024 + 2 * (2048 * 1024 + 2048 * (4 + 1)): "The codes are there once.",
    },
)

_PUBLISHED, _TABLE = 9_525_776_672, 128_256 * 4096


exercise(
    "ex-quantization-4",
    answer=lambda: _PUBLISHED - 2 * _TABLE // 32 * (64 - 34),
    hint="Each of the two tables has 128,256 × 4,096 values; 32 of them take 34 bytes, not 64.",
    wrong={
        lambda: _PUBLISHED - _TABLE // 32 * 30: "That is one table; embedding and head are two.",
        lambda: _PUBLISHED - 2 * _TABLE: "Q8_0 has a scale of two bytes for every 32 values.",
        lambda: _PUBLISHED - 2 * _TABLE // 32 * 34: "Subtract what they lose, not what they take.",
    },
)
