"""Quantized matrices small enough to read: codes, a scale for each block of them, and the way back.

Letters     R rows (outputs of a layer), C columns (its inputs), g values of a row in one block; an
            array carries its own: weight_RC is [R, C]
"""

from typing import NamedTuple

import torch
from torch import Tensor

from ..formats import Format, format_of
from ..formats.format_table import BLOCKS

# What the sixteen codes of 4 bits stand for, in rising order: a code is a place in its row.
LEVELS = {
    # Two's complement has a -8 as well; absmax scales reach it never, a corrected value may.
    "int4": (-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7),
    # Dettmers et al. 2023, QLoRA, arXiv:2305.14314, appendix E: quantiles of a normal distribution.
    "nf4": (
        *(-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453),
        *(-0.28444138169288635, -0.18477343022823334, -0.09105003625154495, 0.0),
        *(0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224),
        *(0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0),
    ),
    # OCP Microscaling v1.0, section 5.3.3: sign, two bits of exponent, one of mantissa.
    "fp4_e2m1": (-6, -4, -3, -2, -1.5, -1, -0.5, 0, 0, 0.5, 1, 1.5, 2, 3, 4, 6),
}
SCALES = {
    "fp32": torch.float32,
    "fp16": torch.float16,
    "bf16": torch.bfloat16,
    "fp8_e4m3": torch.float8_e4m3fn,
    "e8m0": torch.float8_e8m0fnu,
}


class Quantized(NamedTuple):
    """A matrix in a block format.

    Shapes      codes [R, C], or [R, C/2] where two codes of 4 bits share a byte; scales [R, C/g];
                factor: one number for the whole matrix (nvfp4), or None
    """

    format: Format
    codes: Tensor
    scales: Tensor
    factor: Tensor | None = None


def quantize(weight_RC: Tensor, format: str | Format) -> Quantized:
    """Give each block a scale, and each value the code whose level comes nearest.

    Formula     scale = largest magnitude of the block / largest level; code: nearest(value / scale)
    Source      absmax in blocks: Dettmers et al. 2022, arXiv:2110.02861; MX: OCP v1.0, section 6.3;
                NVFP4: NVIDIA 2025, arXiv:2509.25149
    Leaves out  zero points, scales of scales (nf4-dq), blocks that run over the end of a row
    Raises      ValueError for such a format, and for rows that do not fill their blocks
    """
    kind = _checked(format, weight_RC.shape[-1])
    blocks = weight_RC.detach().float().unflatten(-1, (-1, kind.block or weight_RC.shape[-1]))
    scales, factor = block_scales(blocks.abs().amax(-1), kind)
    codes = encode(blocks / multiplier(scales, factor), kind)
    return Quantized(kind, pack(codes.flatten(-2), kind), scales, factor)


def dequantize(q: Quantized, dtype: torch.dtype = torch.bfloat16) -> Tensor:
    """Write every value out again: code times scale, [R, C] in `dtype`."""
    wide_RC = decode(q.codes, q.format, dtype)
    scales = multiplier(q.scales, q.factor, dtype)
    wide_RC.unflatten(-1, (scales.shape[-2], -1)).mul_(scales)
    return wide_RC


def block_scales(highest: Tensor, kind: Format) -> tuple[Tensor, Tensor | None]:
    """One scale for the largest magnitude of each block, and the factor of the whole matrix."""
    assert kind.scale is not None and kind.max_value is not None
    dtype, top = SCALES[kind.scale.name], torch.tensor(float(kind.max_value))
    if kind.scale.name == "e8m0":  # the power of two that the largest value begins with
        exponents = highest.frexp().exponent - top.frexp().exponent
        return torch.ones_like(highest).ldexp(exponents).to(dtype), None
    scales, factor = highest / top, None
    if kind.tensor_bytes:  # fp8 reaches to 448: the factor brings the largest scale there
        factor = scales.max() / torch.finfo(dtype).max
        scales = scales / factor
    return scales.clamp(min=torch.finfo(dtype).tiny).to(dtype), factor


def multiplier(scales: Tensor, factor: Tensor | None, dtype: torch.dtype = torch.float32) -> Tensor:
    """What the levels of each block are multiplied with, [R, C/g, 1]."""
    full = scales if factor is None else scales.float() * factor
    return full.to(dtype).unsqueeze(-1)


def encode(values: Tensor, kind: Format) -> Tensor:
    """The code of the nearest level; halfway between two, either is as near."""
    if _base(kind) == "int8":
        return values.round().clamp(-127, 127).to(torch.int8)
    if _base(kind) == "fp8_e4m3":
        return values.clamp(-448, 448).to(torch.float8_e4m3fn)
    levels = torch.tensor(LEVELS[_base(kind)], device=values.device)
    return torch.bucketize(values, (levels[1:] + levels[:-1]) / 2).to(torch.uint8)


def decode(codes: Tensor, kind: Format, dtype: torch.dtype) -> Tensor:
    """The levels of the codes; a byte with two codes looks up both at once."""
    if kind.bits == 8:
        return codes.to(dtype)
    levels = torch.tensor(LEVELS[_base(kind)], dtype=dtype, device=codes.device)
    pairs = torch.stack((levels.repeat(16), levels.repeat_interleave(16)), -1)
    return pairs[codes.int()].flatten(-2)  # torch wants a place as an integer of 4 bytes or more


def pack(codes: Tensor, kind: Format) -> Tensor:
    """Two codes of 4 bits in one byte, the first in its lower half; codes of a byte as they are."""
    return codes[..., ::2] | codes[..., 1::2] << 4 if kind.bits == 4 else codes


def _base(kind: Format) -> str:
    return BLOCKS.get(kind.name, (kind.name,))[0].partition("/")[0]


def _checked(format: str | Format, columns: int) -> Format:
    kind = format_of(format)
    known = _base(kind) in (*LEVELS, "int8", "fp8_e4m3") and kind.zero is None
    if not known or kind.scale is None or kind.scale.name not in SCALES:
        raise ValueError(f"{kind.name} cannot be built here; known: int8/128, nf4, mxfp4, …")
    if columns % (kind.block or columns):
        raise ValueError(f"C={columns} is not a multiple of {kind.name}'s block of {kind.block}")
    if kind.bits == 4 and columns % 2:
        raise ValueError(f"C={columns} is odd: two codes of 4 bits share a byte")
    return kind
