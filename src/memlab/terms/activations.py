"""Activations: what one layer of a decoder keeps from the forward pass until its backward pass.

B batch · T tokens · D model width · F feed-forward width · N query heads · K key/value heads ·
H head width · b bytes per value

Each function counts what one part of a layer keeps, each tensor once; the layers add the parts up.
What a part keeps depends on the code that runs it, so every function names its implementation.
`memlab.step` says the same tensor by tensor, for more implementations.
"""

from __future__ import annotations

from ..units import whole
from .autocast import input_copies, weight_copies

# precision: bytes of a value in the residual stream, and inside linear layers and attention
PRECISIONS = {"fp32": (4, 4), "bf16": (2, 2), "autocast-bf16": (4, 2)}
BACKENDS = ("cpu", "cuda")

# torch.nn.functional.scaled_dot_product_attention on CUDA: seed and offset of its random numbers,
# kept even where nothing is dropped, and with their own sizes in its flash kernel.
FLASH_RANDOM = 24


def rms_norm(
    batch: int, *, tokens: int, width: int, precision: str = "bf16", backend: str = "cpu"
) -> int:
    """Bytes that torch.nn.RMSNorm keeps, its input included, its output not.

    Formula     cuda: B·T·W·b + 4·B·T;  cpu: 8·B·T·W + 4·B·T
    Shapes      cuda: input [B, T, W], 1/rms [B, T] in fp32;
                cpu: input and normalized input [B, T, W], 1/rms [B, T], all in fp32
    Unit        bytes, a whole number
    Source      torch, aten/src/ATen/native/layer_norm.cpp: one kernel on CUDA, its operators
                one by one on the CPU, where narrow inputs are copied to fp32 first
    Raises      ValueError for a negative size, an unknown precision or backend
    """
    stream, _ = _bytes(precision, backend)
    rows = _rows(batch, tokens)
    kept = stream if backend == "cuda" else 8
    return kept * rows * whole("width", width) + 4 * rows


def layer_norm(
    batch: int, *, tokens: int, width: int, precision: str = "bf16", backend: str = "cpu"
) -> int:
    """Bytes that torch.nn.LayerNorm keeps, its input included, its output not.

    Formula     B·T·W·b + 2·B·T·s
    Shapes      input [B, T, W]; mean and 1/deviation [B, T], s bytes each: 4 on CUDA, b on the CPU
    Unit        bytes, a whole number
    Source      torch, aten/src/ATen/native/layer_norm.cpp
    Raises      as `rms_norm`
    """
    stream, _ = _bytes(precision, backend)
    rows = _rows(batch, tokens)
    statistic = 4 if backend == "cuda" else stream
    return stream * rows * whole("width", width) + 2 * statistic * rows


def linear_input(
    batch: int,
    *,
    tokens: int,
    width: int,
    readers: int = 1,
    precision: str = "bf16",
    backend: str = "cpu",
) -> int:
    """Bytes of the input that linear layers keep for their weights' gradients.

    Formula     B·T·W·b;  readers · B·T·W·b under autocast
    Shapes      input [B, T, W]: one tensor for all its readers (q, k and v), unless autocast casts
                it for each of them
    Unit        bytes, a whole number
    Leaves out  the weights' own narrow copies under autocast: `autocast.weight_copies`
    Raises      as `rms_norm`
    """
    _, inside = _bytes(precision, backend)
    values = _rows(batch, tokens) * whole("width", width)
    if precision.startswith("autocast"):
        return input_copies(values, readers=readers)
    return inside * values


def attention(
    batch: int,
    *,
    tokens: int,
    heads: int,
    kv_heads: int,
    head_dim: int,
    precision: str = "bf16",
    backend: str = "cpu",
) -> int:
    """Bytes that scaled_dot_product_attention keeps in its flash kernel.

    Formula     2·B·T·(N + K)·H·b + 4·B·T·N, on CUDA + 24
    Shapes      q and output [B, N, T, H], k and v [B, K, T, H], log-sum-exp [B, N, T] in fp32
    Unit        bytes, a whole number
    Source      Dao et al. 2022, arXiv:2205.14135; torch, derivatives.yaml
    Leaves out  the T · T weights, which are computed again; `eager_attention` keeps them; on CUDA,
                the padding of heads whose width is no multiple of 8
    Raises      as `rms_norm`
    """
    _, inside = _bytes(precision, backend)
    rows = _rows(batch, tokens)
    width = (whole("heads", heads) + whole("kv_heads", kv_heads)) * whole("head_dim", head_dim)
    extra = FLASH_RANDOM if backend == "cuda" else 0
    return 2 * inside * rows * width + 4 * rows * heads + extra


def eager_attention(
    batch: int, *, tokens: int, heads: int, head_dim: int, precision: str = "bf16"
) -> int:
    """Bytes that attention keeps where transformers spells it out (fp32 or bf16, no dropout).

    Formula     4·B·T·N·H·b + B·N·T·T·(4 + c), c = 2 in bf16 and 0 in fp32
    Shapes      q, k, v copied for each head, and the output [B, N, T, H]; weights [B, N, T, T]: the
                softmax in fp32, and its copy in the narrow format
    Unit        bytes, a whole number
    Source      transformers 5.23, `eager_attention_forward`
    Leaves out  copies that are views where B = 1, N = 1 or K = 1; autocast
    Raises      ValueError for a negative size or another precision
    """
    if precision not in ("fp32", "bf16"):
        raise ValueError(f"precision={precision!r} is not described; known: bf16, fp32")
    _, inside = _bytes(precision, "cpu")
    rows = _rows(batch, tokens)
    weights = 4 + (inside if inside != 4 else 0)
    width = 4 * inside * whole("head_dim", head_dim)
    return rows * whole("heads", heads) * (width + weights * tokens)


def feed_forward(
    batch: int, *, tokens: int, d_ff: int, gated: bool = True, precision: str = "bf16"
) -> int:
    """Bytes between the matrices of a feed-forward layer, the input of the last one included.

    Formula     4·B·T·F·b with a gate, 2·B·T·F·b without
    Shapes      gate, up, silu(gate), their product; or up and gelu(up); all [B, T, F]
    Unit        bytes, a whole number
    Source      Shazeer 2020, arXiv:2002.05202; torch 2.13: silu and gelu keep their input, a
                product both its factors
    Leaves out  fused kernels, which keep fewer
    Raises      as `rms_norm`
    """
    _, inside = _bytes(precision, "cpu")
    return (4 if gated else 2) * inside * _rows(batch, tokens) * whole("d_ff", d_ff)


def llama_layer(
    batch: int,
    *,
    tokens: int,
    d_model: int,
    d_ff: int,
    heads: int,
    kv_heads: int,
    head_dim: int,
    precision: str = "bf16",
    backend: str = "cpu",
) -> int:
    """Bytes that one layer of memlab's TinyLlama keeps, its input included.

    Formula     2 norms + the inputs of q, k, v and of gate, up + attention + feed-forward
                + the copies of 2·D·H·(N + K) + 3·D·F weights under autocast
    Unit        bytes, a whole number
    Source      memlab.lab.models.llama
    Leaves out  norms on queries and keys; the rotary tables, which all layers share
    Raises      as `rms_norm`
    """
    where = {"precision": precision, "backend": backend}
    kept = 2 * rms_norm(batch, tokens=tokens, width=d_model, **where)
    for readers in (3, 2):
        kept += linear_input(batch, tokens=tokens, width=d_model, readers=readers, **where)
    kept += attention(
        batch, tokens=tokens, heads=heads, kv_heads=kv_heads, head_dim=head_dim, **where
    )
    kept += feed_forward(batch, tokens=tokens, d_ff=d_ff, precision=precision)
    matrices = 2 * d_model * head_dim * (heads + kv_heads) + 3 * d_model * d_ff
    return kept + (weight_copies(matrices) if precision.startswith("autocast") else 0)


def gpt_layer(
    batch: int,
    *,
    tokens: int,
    d_model: int,
    d_ff: int,
    heads: int,
    head_dim: int,
    precision: str = "bf16",
    backend: str = "cpu",
) -> int:
    """Bytes that one layer of memlab's TinyGPT keeps, its input included, without dropout.

    Formula     2 norms + the inputs of qkv and up + attention with K = N + feed-forward
                + the copies of 4·D·N·H + 2·D·F weights under autocast
    Unit        bytes, a whole number
    Source      memlab.lab.models.gpt
    Raises      as `rms_norm`
    """
    where = {"precision": precision, "backend": backend}
    kept = 2 * layer_norm(batch, tokens=tokens, width=d_model, **where)
    kept += 2 * linear_input(batch, tokens=tokens, width=d_model, readers=1, **where)
    kept += attention(batch, tokens=tokens, heads=heads, kv_heads=heads, head_dim=head_dim, **where)
    kept += feed_forward(batch, tokens=tokens, d_ff=d_ff, gated=False, precision=precision)
    matrices = 4 * d_model * head_dim * heads + 2 * d_model * d_ff
    return kept + (weight_copies(matrices) if precision.startswith("autocast") else 0)


def _rows(batch: int, tokens: int) -> int:
    return whole("batch", batch) * whole("tokens", tokens)


def _bytes(precision: str, backend: str) -> tuple[int, int]:
    """Bytes of a value in the residual stream and inside linear layers."""
    if precision not in PRECISIONS:
        known = ", ".join(sorted(PRECISIONS))
        raise ValueError(f"unknown precision {precision!r}; known: {known}")
    if backend not in BACKENDS:
        raise ValueError(f"unknown backend {backend!r}; known: {', '.join(BACKENDS)}")
    return PRECISIONS[precision]
