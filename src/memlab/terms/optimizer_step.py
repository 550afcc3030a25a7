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
    if kind not in QUANTIZED:
        raise ValueError(f"unknown kind {kind!r}; known: {', '.join(sorted(QUANTIZED))}")
    count, stored = numel(shape), format_of(QUANTIZED[kind][0])
    if count < SMALLEST_QUANTIZED or count % stored.block:
        raise ValueError(f"{count} values keep plain states: too few, or blocks do not divide them")
    gradient = 0 if format_of(format).name == "fp32" else storage(count, "fp32")
    if kind == "adamw_fp8":
        return WIDENED * count + SCALARS + gradient
    scales = storage(count // stored.block, "fp32")
    return ROUNDED * count + scales + SCALARS + gradient
