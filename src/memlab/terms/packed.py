"""Packed weights: what a matrix takes in the checkpoints of quantized models, as programs load it.

O outputs, C inputs of a linear layer · g outputs and h inputs that share a scale · b bits of a code

A format says what a value takes (memlab.formats). A packed layer has more beside its codes, and
each maker packs another thing; here they all are one formula with other numbers in it.
"""

from __future__ import annotations

from ..units import whole

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

# name: bits of a code, outputs and inputs that share a scale (0: all), bytes of a scale,
# bits of a zero point, bytes for each input, bytes for the whole matrix
LAYOUTS = {
    "gptq": (4, 1, 128, 2, 4, 4, 0),
    "gptq-int8": (8, 1, 128, 2, 8, 4, 0),
    "awq": (4, 1, 128, 2, 4, 0, 0),
    "fp8": (8, 0, 0, 4, 0, 0, 0),
    "fp8-channel": (8, 1, 0, 4, 0, 0, 0),
    "fp8-block": (8, 128, 128, 4, 0, 0, 0),
    "int8-channel": (8, 1, 0, 4, 0, 0, 0),
    "int4-group": (4, 1, 128, 2, 0, 0, 0),
    "mxfp4": (4, 1, 32, 1, 0, 0, 0),
    "nvfp4": (4, 1, 16, 1, 0, 0, 8),
}
# bitsandbytes cuts the flattened matrix: a scale for 64 values, whatever row they are in. With
# double quantization the scales are codes of 8 bits, and 256 of those share a scale.
FLAT = ("nf4", "nf4-dq")
BLOCK, OF_SCALES = 64, 256
LEVELS, SCALE_LEVELS = 16 * 4, 256 * 4  # bytes of the tables of values, kept with each matrix
FORMATS = tuple(
    (
        "gptq gptq-int8 awq fp8 fp8-channel fp8-block int8-channel int4-group mxfp4 nvfp4 nf4 "
        "nf4-dq"
    ).split()
)


def packed(outputs: int, *, inputs: int, format: str, group: int | None = None) -> int:
    """Bytes of one packed matrix, all its tensors together.

    Formula     the sum of `parts`
    Unit        bytes, a whole number
    Raises      as `parts`
    """
    return sum(parts(outputs, inputs=inputs, format=format, group=group))


def parts(outputs: int, *, inputs: int, format: str, group: int | None = None) -> tuple[int, ...]:
    """Bytes of each tensor that one packed matrix has: codes, scales, zero points, index, the rest.

    Formula     ceil(O · C · b / 8), scale · G, ceil(zero · G / 8), index · C, once
                for G = ceil(O / g) · ceil(C / h) groups
                nf4: ceil(O · C / 2), 4 · S and 64, where S = ceil(O · C / 64); with double
                quantization ceil(O · C / 2), S, 4 · ceil(S / 256), 4, 1,024 and 64
    Shapes      codes [O, C], several in one int32 or byte; scales and zero points [O / g, C / h];
                GPTQ's g_idx [C], the group of each input, in int32
    Unit        bytes, whole numbers; a part that the format lacks is left out
    group       h, where the checkpoint says another one than 128 (gptq, awq), 32 (mxfp4) or 16;
                -1: all inputs
    Source      GPTQModel 2.2, QuantLinear.__init__; AutoAWQ 0.2.9, WQLinear_GEMM.__init__;
                transformers, integrations/finegrained_fp8.py, integrations/mxfp4.py;
                bitsandbytes, nn/modules.py: Params4bit, Linear8bitLt
    Leaves out  the bias, what a kernel pads, the allocator's rounding
    Raises      ValueError for another format, a negative size, or a group where none is chosen
    """
    rows, columns = whole("outputs", outputs), whole("inputs", inputs)
    count = rows * columns
    if format in FLAT:
        _no_group(format, group)
        scales = -(-count // BLOCK)
        if format == "nf4":
            return -(-count // 2), 4 * scales, LEVELS
        return -(-count // 2), scales, 4 * -(-scales // OF_SCALES), 4, SCALE_LEVELS, LEVELS
    bits, tall, wide, scale, zero, index, once = _layout(format)
    if group is not None:
        if wide in (0, tall):
            _no_group(format, group)
        wide = columns if group == -1 else whole("group", group)
    groups = -(-rows // (tall or rows or 1)) * -(-columns // (wide or columns or 1))
    made = -(-count * bits // 8), scale * groups, -(-zero * groups // 8), index * columns, once
    return tuple([size for size in made if size])


def _layout(format: str) -> Any:
    """The numbers of a format, as LAYOUTS has them.

    Raises      ValueError for another one; it lists the known
    """
    if format not in LAYOUTS:
        raise ValueError(f"format={format!r} is no packed one; known: {', '.join(FORMATS)}")
    return LAYOUTS[format]


def _no_group(format: str, group: int | None) -> None:
    if group is not None:
        raise ValueError(
            f"group={group} beside {format}, whose scales are where its maker put them"
        )
