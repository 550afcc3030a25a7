"""The exercises of chapter 01, bytes and formats."""

from ..formats import bits_per_value, storage
from ..model import Model
from ..units import GB, parse
from . import exercise


def _llama() -> int:
    return Model.preset("llama-3-8b").parameter_count


exercise(
    "ex-formats-1",
    answer=lambda: storage(_llama(), "tf32"),
    hint="tf32 says what the multiplication reads. Which format do the values lie in?",
    wrong={
        lambda: _llama() * 19 // 8: "tf32 uses 19 bits of a value, but it lies in memory as fp32.",
        lambda: 2 * _llama(): "That is a format of 16 bits; tf32 lies in memory as fp32.",
        lambda: 3 * _llama(): "19 bits would fit into 3 bytes, but nothing packs them there.",
    },
)


exercise(
    "ex-formats-2",
    answer=lambda: next(g for g in range(1, 4097) if bits_per_value(f"int4/{g}:bf16+bf16") == 4.25),
    unit="values",
    hint="A quarter of a bit for each value must add up to the bits of one scale and zero point.",
    wrong={
        lambda: 64: "That pays for the scale alone; the zero point takes another 16 bits.",
        lambda: 16: "Those are 4 bytes over 0.25 bits: bring both to bits.",
        lambda: 8: "Those are 2 bytes over 0.25 bits, and the zero point is missing.",
    },
)


exercise(
    "ex-formats-3",
    answer=lambda: parse("24 GiB") - parse("25 GB"),
    hint="Turn both sizes into bytes first, then subtract.",
    wrong={
        lambda: -GB: "25 is more than 24 only in one and the same unit: GB and GiB are two.",
        lambda: parse("25 GB") - parse("24 GiB"): "Right size, wrong sign: card minus file.",
        lambda: parse("24 GB") - parse("25 GiB"): "You took GB for GiB and GiB for GB.",
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
        "head are not asked for.",
    },
)
