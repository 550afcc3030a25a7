"""Let a step on fake CPU tensors build the autograd graph that the same step builds on CUDA.

PyTorch picks some operators by device, and they keep different tensors for backward: attention
kernels, fused norms, dropout masks of one byte, and what autocast computes in fp32. A function mode
meets each call before that choice and makes it as on CUDA.
"""

from collections.abc import Callable
from contextlib import ExitStack
from types import FunctionType
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

from .cuda_attention import KERNELS, attention
from .cuda_autocast import as_cuda_casts, on_cpu

# Written in Python around calls that differ on CUDA. (Most methods of Tensor written in Python only
# hand on to a method of the same name, which would come back here for ever.)
_OPENED = ("torch.nn.functional", "torch.autograd")
_CHECKS = ("has_torch_function", "has_torch_function_unary", "has_torch_function_variadic")


class CudaGraph(TorchFunctionMode):
    """While its `with` block runs, tensors are kept for backward as on a CUDA device.

    attention   "auto" for the kernel that PyTorch would choose, or "flash", "efficient", "math"
    Also        inside backward, so checkpointed regions are computed again by the same rules, and
                under torch.autocast("cpu"), which then follows the lists of autocast on CUDA
    Source      PyTorch 2.13: layer_norm.cpp, Dropout.cpp, transformers/attention.cpp
    Leaves out  convolutions, batch and group norms and recurrent layers (cuDNN's reserves), scratch
                memory inside kernels, and calls from C++ alone
    Raises      ValueError for an unknown kind of attention
    """

    replaced: dict[Any, Callable]  # REPLACED, below

    def __init__(self, attention: str = "auto") -> None:
        super().__init__()
        if attention not in KERNELS:
            raise ValueError(f"unknown attention {attention!r}; known: {', '.join(KERNELS)}")
        self.attention = attention
        self._opened: dict[Any, Any] = {}
        self._depth = 0
        self._stack = ExitStack()

    def __enter__(self) -> "CudaGraph":
        if self._depth == 0:
            self._stack.enter_context(on_cpu())
        self._depth += 1
        return super().__enter__()

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        self._depth -= 1
        if self._depth == 0:
            self._stack.close()

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        body = None if types else self._open(func)
        if body is not None:
            with self:
                return body(*args, **kwargs)
        if torch.is_autocast_enabled("cpu"):
            args, kwargs = as_cuda_casts(func, args, kwargs)
        if func is F.scaled_dot_product_attention:
            # autocast has cast the arguments; what happens inside is no call of its own.
            with torch.autocast("cpu", enabled=False):
                return attention(*args, **kwargs, kernel=self.attention)
        replacement = self.replaced.get(func)
        return func(*args, **kwargs) if replacement is None else replacement(*args, **kwargs)

    def _open(self, func: Any) -> Callable | None:
        """The body of a torch function written in Python, whose own calls then come by here too.

        Such functions first ask whether a mode wants them; a copy for which the answer is no runs
        on (F.multi_head_attention_forward calls attention, Tensor.backward computes again what a
        checkpoint dropped).
        """
        if func not in self._opened:
            body = None
            home = getattr(func, "__module__", "")
            if isinstance(func, FunctionType) and (home in _OPENED or func is Tensor.backward):
                names = {name: _no for name in _CHECKS if name in func.__globals__}
                if names:
                    body = FunctionType(
                        func.__code__,
                        {**func.__globals__, **names},
                        func.__name__,
                        func.__defaults__,
                        func.__closure__,
                    )
                    body.__kwdefaults__ = func.__kwdefaults__
            self._opened[func] = body
        return self._opened[func]


def _no(*_: Any) -> bool:
    return False


class _RMSNorm(torch.autograd.Function):
    """aten._fused_rms_norm: keeps the input, the weight and one fp32 number a row (rstd)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor | None, dims: int) -> Tensor:
        ctx.save_for_backward(x, weight, _statistic(x, dims))
        return torch.empty_like(x, memory_format=torch.contiguous_format)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        x, weight, _ = ctx.saved_tensors
        return *_like(ctx, x, weight), None


class _LayerNorm(torch.autograd.Function):
    """aten.native_layer_norm on CUDA: mean and rstd are fp32 whatever the input is."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor | None, bias: Tensor | None, dims: int
    ) -> Tensor:
        ctx.save_for_backward(x, weight, bias, _statistic(x, dims), _statistic(x, dims))
        return torch.empty_like(x, memory_format=torch.contiguous_format)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        x, weight, bias, *_ = ctx.saved_tensors
        return *_like(ctx, x, weight, bias), None


def _statistic(x: Tensor, dims: int) -> Tensor:
    wide = torch.float64 if x.dtype == torch.float64 else torch.float32
    return x.new_empty((*x.shape[: x.dim() - dims], *[1] * dims), dtype=wide)


def _like(ctx: Any, *inputs: Tensor | None) -> list[Tensor | None]:
    wanted = zip(inputs, ctx.needs_input_grad, strict=False)
    return [torch.empty_like(t) if t is not None and need else None for t, need in wanted]


def _rms_norm(
    input: Tensor, normalized_shape: Any, weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    if weight is not None and weight.dtype != input.dtype:  # layer_norm.cpp: not fused then
        return torch.rms_norm(input, normalized_shape, weight, eps)
    return _RMSNorm.apply(input, weight, len(normalized_shape))


def _layer_norm(
    input: Tensor,
    normalized_shape: Any,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> Tensor:
    return _LayerNorm.apply(input, weight, bias, len(normalized_shape))


def _dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """aten.native_dropout: keeps one byte a value, where the CPU keeps a factor.

    Source      Dropout.cpp, is_fused_kernel_acceptable; derivatives.yaml, native_dropout
    """
    if train and 0 < p < 1 and input.numel():
        return torch.ops.aten.native_dropout(input, p, True)[0]
    return torch.dropout(input, p, train)


REPLACED: dict[Any, Callable] = {
    torch.rms_norm: _rms_norm,
    torch.layer_norm: _layer_norm,
    torch.dropout: _dropout,
}
CudaGraph.replaced = REPLACED
