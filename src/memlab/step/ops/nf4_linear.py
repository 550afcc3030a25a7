"""A frozen linear layer whose weight is stored as nf4 codes, in a simulated step."""

from __future__ import annotations

from ..core.graph import Tensor
from . import Ops

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

    Grads = list[Any]
else:
    Grads = list


def keep_wide(f: Ops, x: Tensor, codes: Tensor, scales: Tensor, bias: Tensor | None) -> Tensor:
    """memlab.lab.quantized_linear.QuantizedLinear: autograd keeps what is widened."""
    return f.linear(x, widened(f, codes, scales, x.dtype), bias)


def widen_again(f: Ops, x: Tensor, codes: Tensor, scales: Tensor) -> Tensor:
    """memlab.lab.qlora.FrozenLinear: the weight is widened in forward, and again in backward."""
    out = _product(f, x, codes, scales)
    shape = x.shape

    def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
        wide = widened(f, codes, scales, grads[0].dtype)
        made = f.new("mm", shape, grads[0].dtype)
        del wide
        return [made]

    f.apply("linear nf4", [x], [out], run, [("codes", codes), ("scales", scales)])
    return out


def linear_4bit(f: Ops, x: Tensor, codes: Tensor) -> Tensor:
    """bitsandbytes.nn.Linear4bit: nothing of x is kept, and the weight is written out twice.

    Where the stream is wide, as prepare_model_for_kbit_training leaves it, the product is in bf16:
    bnb_4bit_compute_dtype=torch.bfloat16, and the weights were bf16 before they became codes.
    It remembers the codes beside autograd's saved tensors (ctx.tensors), so a checkpoint's second
    pass need not come as far.

    Source      bitsandbytes, nn/modules.py: Linear4bit; autograd/_functions.py: MatMul4Bit;
                backends/default/ops.py: _gemm_4bit_default_impl
    Leaves out  CUDA's fused kernel for up to 1,536 rows, which some cards take in forward: it
                writes no weight out
    """
    before = x.dtype
    compute = "bf16" if before == "fp32" else before
    x = f.to(x, compute)
    outputs, half = codes.shape
    wide = f.new("dequantize_4bit", (outputs, 2 * half), compute)
    out = f.new("mm", (*x.shape[:-1], outputs), compute)
    del wide
    shape = x.shape

    def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
        wide = f.new("dequantize_4bit", (outputs, 2 * half), compute)
        made = f.new("mm", shape, compute)
        del wide
        return [made]

    f.apply("linear nf4", [x], [out], run)
    return f.to(out, before)


def _product(f: Ops, x: Tensor, codes: Tensor, scales: Tensor) -> Tensor:
    wide = widened(f, codes, scales, x.dtype)
    out = f.new("mm", (*x.shape[:-1], wide.shape[0]), x.dtype)
    del wide
    return out


def widened(f: Ops, codes: Tensor, scales: Tensor, dtype: str) -> Tensor:
    """memlab.lab.quantize.dequantize of nf4: a look-up of two values for each byte, then scales.

    Raises      ValueError under autocast and on CUDA, where it is not described
    """
    if f.autocast or f.backend == "cuda":
        raise ValueError("a base in nf4 is not described under autocast or on cuda")
    outputs, half = codes.shape
    wide = _looked_up(f, codes, (outputs, 2 * half), dtype)
    f.to(f.detach(scales), dtype)
    return wide


def _looked_up(f: Ops, codes: Tensor, shape: tuple[int, ...], dtype: str) -> Tensor:
    levels = f.new("tensor", (16,), dtype)
    first = f.new("repeat", (256,), dtype)
    second = f.new("repeat_interleave", (256,), dtype)
    pairs = f.new("stack", (256, 2), dtype)
    del first, second
    places = f.new("to", codes.shape, "int32")
    wide = f.new("index", shape, dtype)
    del levels, pairs, places
    return wide
