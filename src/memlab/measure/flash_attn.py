"""A stand-in for the package flash-attn, where it is not: it makes and keeps what the package does.

Nothing is computed, for bytes do not depend on values: what surrounds it is its callers' own code.

T tokens of a row · N query heads · K key/value heads · H head width · n texts in a row
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

MULTIPLE = 8  # other head widths are padded, in copies


class Flash(torch.autograd.Function):
    """FlashAttnFunc and FlashAttnVarlenFunc, of which the second one has starts of texts.

    Shapes      q [..., N, H], k and v [..., K, H]; with starts [n+1] rows of all texts, [T, N, H]
    Source      flash-attn 2.7, flash_attn/flash_attn_interface.py: forward, backward, and what the
                fakes that it registers of its kernels return
    """

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, starts: Any, longest: Any) -> Tensor:
        width = q.shape[-1]
        if rest := -width % MULTIPLE:
            q, k, v = (F.pad(t, (0, rest)) for t in (q, k, v))
        out = torch.empty_like(q)
        rows = q.shape[:-2]
        shape = (q.shape[-2], *rows) if len(rows) == 1 else (rows[0], q.shape[-2], rows[1])
        lse = torch.empty(shape, dtype=torch.float32, device=q.device)
        state = torch.empty(2, dtype=torch.int64, device=q.device)
        saved = [q, k, v, out, lse, *([] if starts is None else [starts, starts]), state]
        ctx.save_for_backward(*saved)
        ctx.longest, ctx.width = longest, width
        return out[..., :width]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        q, k, v = ctx.saved_tensors[:3]
        dq, dk, dv = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)
        return *(gradient[..., : ctx.width] for gradient in (dq, dk, dv)), None, None


def flash_attn_func(
    q: Any,
    k: Any,
    v: Any,
    dropout_p: Any = 0.0,
    softmax_scale: Any = None,
    causal: Any = False,
    window_size: Any = (-1, -1),
) -> Any:
    """Of rows that are one text each."""
    return Flash.apply(q, k, v, None, None)  # type: ignore[no-untyped-call]


def flash_attn_varlen_func(
    q: Any,
    k: Any,
    v: Any,
    cu_seqlens_q: Any,
    cu_seqlens_k: Any,
    max_seqlen_q: Any,
    max_seqlen_k: Any,
    dropout_p: Any = 0.0,
    softmax_scale: Any = None,
    causal: Any = False,
    window_size: Any = (-1, -1),
) -> Any:
    """Of several texts in one row."""
    return Flash.apply(q, k, v, cu_seqlens_q, max_seqlen_q)  # type: ignore[no-untyped-call]
