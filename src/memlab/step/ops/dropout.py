"""Dropout in a simulated step: what each backend keeps of it."""

from __future__ import annotations

from ...terms.dropout import mask_format
from ..core.graph import Grads, Tensor
from . import Ops


def dropout(f: Ops, x: Tensor, p: float) -> Tensor:
    """On the CPU a product with a mask of x's own dtype, which is kept; on CUDA one kernel."""
    if p == 0:
        return x
    if f.backend == "cuda":
        return native_dropout(f, x)
    noise = f.new("bernoulli", x.shape, mask_format(x.dtype, backend="cpu"))
    return f.mul(x, noise)


def native_dropout(f: Ops, x: Tensor) -> Tensor:
    """One kernel on CUDA, which keeps what it dropped: one byte a value.

    Source      aten/src/ATen/native/Dropout.cpp, is_fused_kernel_acceptable; derivatives.yaml
    """
    out = f.new("native_dropout", x.shape, x.dtype)
    dropped = f.new("native_dropout", x.shape, mask_format(x.dtype, backend="cuda"))

    def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
        return [f.new("native_dropout_backward", grads[0].shape, grads[0].dtype)]

    f.apply("native_dropout", [x], [out], run, [("result1", dropped)])
    return out
