"""The exercises of the chapter on bytes and formats."""

from ..formats import storage
from ..model import Model
from . import exercise


def _llama() -> int:
    return Model.preset("llama-3-8b").parameter_count


def _blocks(shared: int = 4, block: int = 128) -> int:
    return 4096 + shared * (4096 // block)


exercise(
    "ex-formats-1",
    answer=_blocks,
    hint="One byte for each value, and two bf16 numbers for each of the 32 blocks.",
    wrong={
        lambda: _blocks(2): "That is the scale alone; the zero point takes two bytes as well.",
        lambda: _blocks(8): "Scale and zero point are bf16 here: two bytes each.",
        lambda: _blocks() - 4096: "Those are scales and zero points; the values come on top.",
    },
)


exercise(
    "ex-formats-2",
    answer=lambda: storage(_llama(), "tf32"),
    hint="tf32 says what the multiplication reads. Which format do the values lie in?",
    wrong={
        lambda: _llama() * 19 // 8: "tf32 uses 19 bits of a value, but it lies in memory as fp32.",
        lambda: 2 * _llama(): "That is a format of 16 bits; tf32 lies in memory as fp32.",
        lambda: 3 * _llama(): "19 bits would fit into 3 bytes, but nothing packs them there.",
    },
)


exercise(
    "ex-formats-3",
    answer=lambda: 2 ** (10 - 7),
    hint="Each bit of the mantissa halves the step after 1.",
    unit="times",
    wrong={
        lambda: 3: "Three bits of difference are a factor of two to the three.",
        lambda: 10: "That is the mantissa of fp16; bf16 has 7.",
    },
)


def _nvfp4(matrices: int = 96) -> int:
    return matrices * storage(4096 * 14336, "nvfp4")


exercise(
    "ex-formats-4",
    answer=_nvfp4,
    hint="4 bits and a sixteenth of a byte for each value, 4 bytes for each of the 96 matrices.",
    wrong={
        lambda: _nvfp4(1): "That is one matrix; each of 32 layers has three.",
        lambda: _nvfp4() - 96 * 4: "Nearly: each matrix keeps one fp32 number of its own.",
        lambda: _nvfp4() - 95 * 4: "Nearly: it is one fp32 number for each matrix, not for all.",
        lambda: 96 * 4096 * 14336 // 2: "That is 4 bits a value; the scales are missing.",
        lambda: storage(_llama(), "nvfp4"): "Those are all parameters; attention, embedding and "
        "head are not among them.",
    },
)
