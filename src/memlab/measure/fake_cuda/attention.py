"""Attention as CUDA runs it: which kernel takes a call, and what that kernel keeps.

Nothing is computed here: the operators have shapes on fake tensors, on any machine.

Letters     B batch, T tokens, N query heads, K key/value heads, H head width
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

KERNELS = ("auto", "flash", "efficient", "math")
HALVES = (torch.float16, torch.bfloat16)

# aten/src/ATen/native/transformers/cuda/sdp_utils.cpp and attention.cpp
FLASH_WIDEST = 256  # check_head_dim_size_flash
FLASH_MULTIPLE = 8  # pad_last_dim: other head widths are padded, in copies
MASK_MULTIPLE = 8  # preprocess_mask: other rows of a mask are padded


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    *,
    kernel: str = "auto",
) -> Tensor:
    """F.scaled_dot_product_attention with the saved tensors of one of CUDA's kernels.

    kernel      "auto" asks `choose`; flash, efficient and math take every call as if they could
    Shapes      query [B, N, T, H], key and value [B, K, T, H]
    Leaves out  scratch memory inside the kernels, cuDNN's kernel (keeps what flash keeps)
    """
    if kernel == "auto":
        kernel = choose(query, key, value, attn_mask, is_causal)
    if kernel == "flash":
        return _flash(query, key, value, dropout_p, is_causal, scale)
    if kernel == "efficient":
        key, value = _expand(query, key, value)
        mask = _float_mask(attn_mask, query)
        if mask is not None:
            mask = _aligned(mask).expand(*query.shape[:-1], key.shape[-2])
        keep = torch.is_grad_enabled() and any(t.requires_grad for t in (query, key, value))
        efficient = torch.ops.aten._scaled_dot_product_efficient_attention
        return efficient(query, key, value, mask, keep, dropout_p, is_causal, scale=scale)[0]
    return _math(query, key, value, attn_mask, dropout_p, is_causal, scale)


def choose(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None, is_causal: bool
) -> str:
    """The kernel that PyTorch takes on an Ampere card or later: flash, efficient, else math.

    Dropout     changes nothing in the choice: flash and efficient drop inside the kernel
    Shared heads  are for flash alone in torch 2.13; later versions let efficient take them too
                (pytorch pull request 191085), where 2.13 falls back to math
    Source      sdp_utils.cpp, can_use_flash_attention and can_use_mem_efficient_attention; the
                switches of torch.nn.attention.sdpa_kernel count
    Leaves out  cuDNN's kernel, which recent cards may prefer, and per-card limits of head width
    """
    on = torch.backends.cuda
    widths = {query.shape[-1], key.shape[-1], value.shape[-1]}
    plain = query.dim() == 4 and all(size > 0 for size in (*query.shape, *key.shape))
    square = query.shape[-2] == key.shape[-2]
    if (
        plain
        and on.flash_sdp_enabled()
        and attn_mask is None
        and query.dtype in HALVES
        and len(widths) == 1
        and max(widths) <= FLASH_WIDEST
        and (square or not is_causal)
    ):
        return "flash"
    multiple = 8 if query.dtype in HALVES else 4
    if (
        plain
        and on.mem_efficient_sdp_enabled()
        and query.dtype in (*HALVES, torch.float32)
        and query.shape[1] == key.shape[1] == value.shape[1]  # no grouped queries here
        and query.shape[-1] == key.shape[-1]
        and all(width % multiple == 0 for width in widths)
    ):
        return "efficient"
    return "math"


def _flash(
    query: Tensor, key: Tensor, value: Tensor, dropout: float, causal: bool, scale: float | None
) -> Tensor:
    width = query.shape[-1]
    if rest := -width % FLASH_MULTIPLE:
        scale = width**-0.5 if scale is None else scale
        query, key, value = (F.pad(t, (0, rest)) for t in (query, key, value))
    flash = torch.ops.aten._scaled_dot_product_flash_attention
    out = flash(query, key, value, dropout, causal, False, scale=scale)[0]
    return out[..., :width] if rest else out


def _math(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    dropout: float,
    causal: bool,
    scale: float | None,
) -> Tensor:
    """The kernel of last resort: every score is a number in memory, in fp32.

    Source      attention.cpp, _scaled_dot_product_attention_math; its weights are returned as well,
                in the format of the query, and dropped by the caller
    Leaves out  what _safe_softmax needs inside: the softmax once more, and a byte a score
    """
    before = query.dtype
    if before in HALVES and not torch.backends.cuda.fp16_bf16_reduction_math_sdp_allowed():
        query, key, value = (t.float() for t in (query, key, value))
    root = math.sqrt(abs(query.shape[-1] ** -0.5 if scale is None else scale))
    query = query * (-root if scale is not None and scale < 0 else root)
    if causal:
        square = (query.shape[-2], key.shape[-2])
        mask = torch.ones(square, dtype=torch.bool, device=query.device).tril()
    mask = _float_mask(mask, query)
    key, value = _expand(query, key, value)
    scores = query @ (key.transpose(-2, -1) * root)
    if mask is not None:
        scores.add_(mask)
    weights = torch.ops.aten._safe_softmax(scores, -1)
    del scores
    if dropout:
        weights = torch.ops.aten.native_dropout(weights, dropout, True)[0]
    narrow = weights.to(before)
    result = (weights @ value).to(before)
    del narrow
    return result


def _expand(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    """Repeat key and value heads for kernels that share none."""
    times = query.shape[1] // key.shape[1] if query.dim() == 4 else 1
    if times == 1:
        return key, value
    return key.repeat_interleave(times, 1), value.repeat_interleave(times, 1)


def _float_mask(mask: Tensor | None, query: Tensor) -> Tensor | None:
    """A mask of yes and no as numbers to add: 0 and minus infinity, in the query's format."""
    if mask is None or mask.dtype != torch.bool:
        return mask
    zero, never = (query.new_full((), number) for number in (0.0, -math.inf))
    return torch.where(mask, zero, never)


def _aligned(mask: Tensor) -> Tensor:
    if mask.stride(-1) == 1 and all(step % MASK_MULTIPLE == 0 for step in mask.stride()[:-1]):
        return mask
    width = mask.shape[-1]
    return F.pad(mask, (0, MASK_MULTIPLE - width % MASK_MULTIPLE))[..., :width]
