"""Autocast as CUDA does it, for tensors on the CPU: what is computed in fp32 there and not here.

What is computed in the narrow format is the same on both, so torch.autocast("cpu") does that part.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

# torch/include/ATen/autocast_mode.h, AT_FORALL_FP32: autocast on CUDA computes these in fp32 ...
FP32 = frozenset(
    "acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan pow __pow__ "
    "__rpow__ softplus layer_norm rms_norm group_norm cosine_similarity poisson_nll_loss "
    "cosine_embedding_loss nll_loss nll_loss_nd cross_entropy_loss hinge_embedding_loss kl_div "
    "l1_loss smooth_l1_loss huber_loss mse_loss margin_ranking_loss multilabel_margin_loss "
    "soft_margin_loss triplet_margin_loss multi_margin_loss binary_cross_entropy_with_logits dist "
    "pdist cdist renorm logsumexp".split()
)
# ... and these too, by asking for an fp32 result (AT_FORALL_FP32_SET_OPT_DTYPE, norm).
FP32_RESULT = frozenset(
    "prod softmax log_softmax cumprod cumsum linalg_vector_norm linalg_matrix_norm sum norm".split()
)


@contextmanager
def on_cpu() -> Iterator[None]:
    """Let torch.autocast("cuda") act on the CPU tensors that stand for those on the device."""
    kind: Any = torch.autocast
    before = kind.__init__

    def __init__(self: Any, device_type: str, dtype: Any = None, *rest: Any, **named: Any) -> None:
        if device_type == "cuda":
            device_type, dtype = "cpu", dtype or torch.get_autocast_dtype("cuda")
        before(self, device_type, dtype, *rest, **named)

    kind.__init__ = __init__
    try:
        yield
    finally:
        kind.__init__ = before


def as_cuda_casts(func: Any, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
    """Arguments as autocast on CUDA hands them on."""
    name = getattr(func, "__name__", "")
    if func is F.scaled_dot_product_attention:
        return _cast(args, kwargs, torch.get_autocast_dtype("cpu"))
    if name in FP32:
        return _cast(args, kwargs, torch.float32)
    if name in FP32_RESULT and kwargs.get("dtype") is None and _below_fp32(args, kwargs):
        return args, {**kwargs, "dtype": torch.float32}
    return args, kwargs


def _cast(args: tuple, kwargs: dict[str, Any], dtype: torch.dtype) -> tuple[tuple, dict[str, Any]]:
    def one(value: Any) -> Any:
        floating = isinstance(value, Tensor) and value.is_floating_point()
        return value.to(dtype) if floating and value.dtype != torch.float64 else value

    # The last argument first, as GCC evaluates them: torch.autocast("cpu") of a real run does too.
    named = {name: one(value) for name, value in reversed(kwargs.items())}
    return tuple(map(one, args[::-1]))[::-1], named


def _below_fp32(args: tuple, kwargs: dict[str, Any]) -> bool:
    first = args[0] if args else kwargs.get("input")
    return isinstance(first, Tensor) and first.dtype in (torch.float16, torch.bfloat16)
