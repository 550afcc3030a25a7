"""Rounding with an eye on the inputs: GPTQ and AWQ for one layer, in the same bytes.

Rounding to the nearest treats all columns alike. But a layer's output is x · w, so an error counts
as much as the inputs that it meets. A few real inputs say how much that is.

Letters     N rows of calibration inputs; R, C, g as in memlab.lab.quantize
"""

import torch
from torch import Tensor

from ..formats import Format
from .quantize import (
    Quantized,
    block_scales,
    decode,
    dequantize,
    encode,
    multiplier,
    pack,
    quantize,
)


def output_error(weight_RC: Tensor, other_RC: Tensor, inputs_NC: Tensor) -> float:
    """How far the outputs of another weight are off, as a share of the outputs."""
    wanted = inputs_NC.float() @ weight_RC.float().mT
    return float((inputs_NC.float() @ other_RC.float().mT - wanted).norm() / wanted.norm())


def gptq(
    weight_RC: Tensor, inputs_NC: Tensor, format: str | Format, *, damp: float = 0.01
) -> Quantized:
    """Round column after column; let the columns still to come make up for each one's error.

    Formula     H = x^T x, U = upper Cholesky factor of its inverse; after rounding column c the
                later ones lose (w - rounded) / U[c, c] · U[c, later]
    Shapes      H, U [C, C] in fp32: 4 · C · C bytes each, whatever the number of inputs
    Source      Frantar et al. 2023, arXiv:2210.17323, algorithm 1
    Leaves out  lazy updates in batches of columns, and the order by activation
    Raises      as `quantize`; torch.linalg.LinAlgError where `damp` is 0 and a column always was
    """
    kind, rest_RC = quantize(weight_RC, format).format, weight_RC.detach().float().clone()
    C = rest_RC.shape[-1]
    H_CC = inputs_NC.float().mT @ inputs_NC.float()
    H_CC.diagonal().add_(damp * H_CC.diagonal().mean())
    U_CC = torch.linalg.cholesky(torch.linalg.inv(H_CC), upper=True)
    codes, scales = [], []
    for c in range(C):
        if c % (kind.block or C) == 0:  # a scale for the block as the errors have left it
            block_Rg = rest_RC[:, c : c + (kind.block or C)]
            scale, factor = block_scales(block_Rg.abs().amax(-1, keepdim=True), kind)
            by = multiplier(scale, factor).flatten(1)
            scales.append(scale)
        codes.append(encode(rest_RC[:, c : c + 1] / by, kind))
        # decode reads two codes from a byte: give it this one and the lowest
        rounded = decode(codes[-1], kind, torch.float32)[:, :1] * by
        off = (rest_RC[:, c : c + 1] - rounded) / U_CC[c, c]
        rest_RC[:, c + 1 :] -= off * U_CC[c, c + 1 :]
    return Quantized(kind, pack(torch.cat(codes, -1), kind), torch.cat(scales, -1))


def awq(weight_RC: Tensor, inputs_NC: Tensor, format: str | Format) -> tuple[Quantized, Tensor]:
    """Widen the columns that large inputs meet, before rounding; the inputs shrink by as much.

    Formula     x · w = (x / s) · (s · w); s = (mean |x| of the column)^a, a the best of 0, 1/20 … 1
    Shapes      returns the quantized s · w, and s [C]: what comes before the layer takes the 1 / s
    Source      Lin et al. 2024, arXiv:2306.00978, section 3.2
    Leaves out  clipping; a search on other inputs than those that it is judged by
    """
    sizes_C = inputs_NC.float().abs().mean(0).clamp(min=1e-6)
    tried = []
    for step in range(21):
        s_C = sizes_C ** (step / 20)
        s_C = s_C / (s_C.max() * s_C.min()).sqrt()
        q = quantize(weight_RC.float() * s_C, format)
        back_RC = dequantize(q, torch.float32) / s_C
        tried.append((output_error(weight_RC, back_RC, inputs_NC), step, q, s_C))
    return min(tried, key=lambda t: t[:2])[2:]
