"""Optimizer step: the room that an optimizer needs for a moment, beside what it keeps.

n values of the parameter at hand · b bytes per value
"""

from __future__ import annotations

from ..formats import format_of, storage
from .optimizer import QUANTIZED, SMALLEST_QUANTIZED, numel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..formats import Format

# torchao/optim/adam.py, `single_param_adam`, run line by line: the parameter, both moments, the
# root, the corrected mean and their quotient, all in fp32.
WIDENED = 6 * 4
# torchao/optim/quant_utils.py, `quantize_8bit_with_qmap`: while a moment is rounded, three of those
# six are there, and the scaled input (4), the codes and their successors (8 + 8, as int64), what
# both stand for (4 + 4), the residual (4), half the distance (4 + 4) and what is nearer (1).
ROUNDED = 3 * 4 + 4 + 8 + 8 + 4 + 4 + 4 + 4 + 4 + 1
# The two bias corrections, one fp32 number each.
SCALARS = 2 * 4


# The same, compiled by torch.compile for a CPU: of each moment the scaled values, in fp32; with 4
# bits also the codes as int64, and the unpacked codes of the last step. Counted from the buffers of
# the code that inductor writes, torch 2.13 and torchao 0.18.
COMPILED = {"adamw8bit": 2 * 4, "adamw4bit": 2 * (4 + 8 + 1), "adamw_fp8": 0}


def low_bit_eager(
    shape: Sequence[int], *, kind: str = "adamw8bit", format: str | Format = "fp32"
) -> int:
    """Bytes that torchao's low-bit AdamW adds for a moment to update one tensor, not compiled.

    Formula     53 · n + S + 8 for 8 and 4 bits, 24 · n + 8 for FP8; 4 · n more for a gradient that
                is not fp32
    Shapes      S: the new scales of one state
    Unit        bytes, a whole number
    Source      torchao/optim 0.18, counted allocation by allocation
    Leaves out  torch.compile, which torchao asks for and which keeps these copies in registers;
                lookup tables and states, which stay
    Raises      ValueError for an unknown kind, and for a tensor whose states are not quantized
    """
    count, stored = numel(shape), _stored(kind)
    if not _quantizes(count, stored):
        raise ValueError(f"{count} values keep plain states: too few, or blocks do not divide them")
    gradient = 0 if format_of(format).name == "fp32" else storage(count, "fp32")
    if kind == "adamw_fp8":
        return WIDENED * count + SCALARS + gradient
    scales = storage(count // stored.block, "fp32")
    return ROUNDED * count + scales + SCALARS + gradient


def low_bit_compiled(
    shape: Sequence[int], *, kind: str = "adamw8bit", format: str | Format = "fp32"
) -> int:
    """Bytes that torchao's low-bit AdamW adds for a moment to update one tensor, compiled.

    Formula     2 · S + 8 · n with 8 bits, 2 · S + 26 · n with 4 bits, 2 · S with FP8; 0 for a
                tensor whose states are not quantized
    Shapes      S: the new scales of one state, 4 bytes a block
    Unit        bytes, a whole number
    Source      the code that torch.compile writes for a CPU, torch 2.13 and torchao 0.18; that for
                CUDA was not measured
    Leaves out  two numbers (12 bytes); FP8 codes, where rows are no multiple of the block (2 · n)
    Raises      ValueError for an unknown kind
    """
    stored = _stored(kind)
    count = numel(shape)
    if not _quantizes(count, stored):
        return 0
    return COMPILED[kind] * count + 2 * storage(count // stored.block, "fp32")


def low_bit_room(
    shape: Sequence[int], *, kind: str, format: str | Format = "fp32", compiled: bool = True
) -> int:
    """Bytes that torchao's low-bit AdamW adds for a moment to update one tensor of any size.

    Formula     `low_bit_compiled`, or `low_bit_eager`; where states are plain and nothing is
                compiled 24 · n + 8, and 4 · n more for a gradient that is not fp32
    Unit        bytes, a whole number
    Source      torchao/optim/adam.py, `single_param_adam`
    Raises      ValueError for an unknown kind
    """
    if compiled:
        return low_bit_compiled(shape, kind=kind, format=format)
    count = numel(shape)
    if _quantizes(count, _stored(kind)):
        return low_bit_eager(shape, kind=kind, format=format)
    gradient = 0 if format_of(format).name == "fp32" else storage(count, "fp32")
    return WIDENED * count + SCALARS + gradient


def _quantizes(count: int, stored: Format) -> bool:
    """Whether the states of so many values are quantized at all."""
    return count >= SMALLEST_QUANTIZED and count % stored.block == 0


def _stored(kind: str) -> Format:
    if kind not in QUANTIZED:
        raise ValueError(f"unknown kind {kind!r}; known: {', '.join(sorted(QUANTIZED))}")
    return format_of(QUANTIZED[kind][0])
