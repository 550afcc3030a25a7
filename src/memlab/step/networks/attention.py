"""Attention as transformers calls it: eager, or scaled_dot_product_attention in its kernels."""

from __future__ import annotations

from ..core.graph import Tensor
from ..core.setting import Setting
from ..core.storage_log import Dim
from ..ops import Ops
from ..ops.sdpa_kernel import kernel
from .gpt_parts import matmul, merge_heads, product, repeated, scattered, weighted
from .hf_common import dropout


def chosen(f: Ops, s: Setting, *, masked: bool = False) -> str:
    """The kernel of a setting. With a mask, transformers repeats shared heads beforehand."""
    shared = s.K < s.N and not masked
    p, dtype = s.attention_dropout, f.autocast or s.dtype
    return kernel(f.backend, dtype, s.H, values=s.values, shared=shared, masked=masked, dropout=p)


def scores_kept(f: Ops, s: Setting, *, masked: bool = False) -> bool:
    """Whether every score is a number in memory; gradients of q, k and v come head by head then."""
    return s.attention == "eager" or chosen(f, s, masked=masked) == "math"


def splits(f: Ops, s: Setting) -> bool:
    """Whether gradients of q and v come head by head, to be copied into rows."""
    return s.N > 1 and scores_kept(f, s)


def splits_joined(f: Ops, s: Setting, *, masked: bool = False) -> bool:
    """Whether those of k and v do so because these two were joined in a cache, head by head.

    CUDA's flash kernel makes gradients in the order of memory of what it was given.
    """
    if not s.cached or f.backend != "cuda" or s.K == 1 or s.T == 1:
        return False
    if s.attention == "flash_attention_2" and s.texts == "packed":  # which are copied into rows
        return False
    return s.attention != "eager" and chosen(f, s, masked=masked) == "flash"


def attend(
    f: Ops,
    s: Setting,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None,
    *,
    upcast: bool = True,
    rows: bool = True,
    part: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Attention by the kernel of the setting: [B, T, N·H], and eager's weights, which it returns.

    upcast      eager's softmax is in fp32 whatever the scores are
    rows        q and k lie in rows of all heads, as v always does
    part        q lies in such a row together with k and v
    """
    if s.attention == "eager":
        assert mask is not None  # eager's scores always have one
        return eager_own_heads(f, s, q, k, v, mask, upcast=upcast, rows=rows, part=part)
    return sdpa_forward(f, s, q, k, v, mask, rows=rows), None


def sdpa_forward(
    f: Ops,
    s: Setting,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None = None,
    *,
    rows: bool = True,
) -> Tensor:
    """transformers' sdpa_attention_forward: [B, T, N·H].

    mask        of yes and no, [1, 1, T, T]; without one, attention is causal
    Source      transformers, integrations/sdpa_attention.py: with a mask, heads are repeated,
                but for one new token: its queries of a shared head are rows of one then
    """
    if mask is not None and s.T > 1:
        k, v = f.repeat_heads(k, s.N), f.repeat_heads(v, s.N)
    y = sdpa(f, s, q, k, v, mask, rows=rows)
    return in_rows(f, s, y, masked=mask is not None, rows=rows)


def in_rows(f: Ops, s: Setting, y: Tensor, *, masked: bool = False, rows: bool = True) -> Tensor:
    """The output of `sdpa` as [B, T, N·H]: a copy, unless it lies in memory like this."""
    name = chosen(f, s, masked=masked)
    # Flash gives its output in the order of memory of q, the efficient kernel in rows.
    lies = name == "efficient" or (name == "flash" and rows and not s.shared)
    return f.view(y, s.B, s.T, s.attended) if lies else merge_heads(f, y, s)


def sdpa(
    f: Ops,
    s: Setting,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None = None,
    *,
    rows: bool = True,
) -> Tensor:
    """scaled_dot_product_attention in the kernel that takes the call: [B, N, T, H]."""
    name = chosen(f, s, masked=mask is not None)
    value, key, query = f.cast(v), f.cast(k), f.cast(q)
    bias = None if mask is None else numbers(f, s, mask, query.dtype)
    if name == "math":
        return math_attention(f, s, query, key, value, bias, rows=rows)
    if bias is not None and name == "efficient":
        bias = aligned(f, bias)
    return f.attention(query, key, value, bias)


def numbers(f: Ops, s: Setting, mask: Tensor, dtype: str) -> Tensor:
    """A mask of yes and no as numbers to add: zero and minus infinity."""
    zero, never = f.new("scalar_tensor", (), dtype), f.new("scalar_tensor", (), dtype)
    made = f.new("where", (s.B, 1, s.T, mask.shape[-1]), dtype)
    del zero, never
    return made


def aligned(f: Ops, mask: Tensor) -> Tensor:
    """The mask with rows padded to a multiple of 8, as the efficient kernel wants them.

    Source      attention.cpp, preprocess_mask
    """
    *rest, width = mask.shape
    if width % 8 == 0:
        return mask
    return f.new("pad", (*rest, Dim("⌈T⌉8", width + 8 - width % 8)), mask.dtype)


def eager_own_heads(
    f: Ops,
    s: Setting,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor,
    *,
    upcast: bool,
    rows: bool,
    part: bool,
) -> tuple[Tensor, Tensor]:
    """The attention that transformers writes out, as `attend` returns it."""
    copies = (rows and scattered(s, part=part), rows and scattered(s) and not s.cached)
    scores = f.scale(matmul(f, q, k, s.B, s.N, s.T, s.seen, copies=copies))
    scores = f.add(scores, mask)
    if upcast:
        scores = f.to(_softmax_fp32(f, scores), q.dtype)
    else:
        scores = f.softmax(scores)
        scores = f.to(scores, v.dtype)
    scores = dropout(f, scores, s.attention_dropout)
    y = weighted(f, s, scores, v, matmul, copied=scattered(s) and not s.cached)
    return merge_heads(f, y, s), scores


def math_attention(
    f: Ops,
    s: Setting,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    bias: Tensor | None = None,
    *,
    rows: bool = True,
) -> Tensor:
    """What SDPA does where no kernel takes the call: all of it in fp32.

    Source      aten/src/ATen/native/transformers/attention.cpp, _scaled_dot_product_attention_math
    """
    dtype = q.dtype
    wide_q, wide_k, wide_v = f.to(q, "fp32"), f.to(k, "fp32"), f.to(v, "fp32")
    scaled = f.scale(wide_q)
    mask = bias
    if bias is None and s.T > 1:  # one token sees all of them
        mask = _triangle(f, s)
    keys, values = wide_k, wide_v
    if bias is None or s.T > 1:
        keys, values = repeated(f, wide_k, s.N), repeated(f, wide_v, s.N)
    own = s.K == s.N if bias is not None else keys is wide_k  # heads as projected, not repeated
    own = own and not (s.cached and s.model.latent is None)  # nor joined in a cache
    copies = (scattered(s) and rows, scattered(s) and rows and own)
    scores = product(f, scaled, f.scale(keys), s.B, s.N, s.T, k.shape[2], copies=copies)
    if (
        mask is not None and f.backend == "cpu"
    ):  # in place, but not under a dispatch mode such as a tracker on the CPU
        scores = f.add(scores, mask)
    scores = f.softmax(scores)
    scores = dropout(f, scores, s.attention_dropout)
    narrow = f.to(scores, dtype)  # returned as well, and dropped by the caller
    shared_by_all = bias is not None and s.K == 1 and wide_v is v  # a view of one head
    # Values of a latent are made anew for all tokens that are seen, in rows of all heads.
    anew = s.model.latent is not None and s.B > 1 and s.N > 1 and s.seen > 1
    copied = anew or (scattered(s) and (own or shared_by_all))
    y = f.to(weighted(f, s, scores, values, product, copied=copied), dtype)
    del narrow
    return y


def _triangle(f: Ops, s: Setting) -> Tensor:
    """SDPA's own causal mask, first as truth values, then as numbers to add."""
    ones = f.new("ones", (s.T, s.T), "bool")
    lower = f.new("tril", (s.T, s.T), "bool")
    del ones
    zero, smallest = f.new("scalar_tensor", (), "fp32"), f.new("scalar_tensor", (), "fp32")
    mask = f.new("where", (s.T, s.T), "fp32")
    del zero, smallest, lower
    return mask


def _softmax_fp32(f: Ops, scores: Tensor) -> Tensor:
    wide = f.to(scores, "fp32")
    return f.softmax(wide)
