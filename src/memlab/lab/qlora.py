"""QLoRA in plain torch: a frozen base of four-bit codes under the adapters of memlab.lab.lora.

Letters     D inputs, F outputs of a layer; x_BTD has the shape [B, T, D]
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from ..formats import Format
from .quantize import Quantized, dequantize
from .quantized_linear import QuantizedLinear


class DequantizeAgain(torch.autograd.Function):
    """x · Wᵀ where W is written out from its codes in forward, and once more in backward.

    A frozen weight is needed in backward too, for the gradient of x. `F.linear` would therefore
    keep the written-out weight. This function keeps the codes, which stay alive anyway.

    Source      torchao 0.18: LinearNF4 in nf4_tensor.py; bitsandbytes: MatMul4Bit
    Leaves out  gradients of the weight and the bias, which are frozen; autocast
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, format: Format, bias: Tensor | None, *parts: Tensor) -> Tensor:
        ctx.format = format
        ctx.save_for_backward(*parts)
        return linear(x, dequantize(Quantized(format, *parts), x.dtype), bias)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (grad,), parts = grads, ctx.saved_tensors
        dx = grad @ dequantize(Quantized(ctx.format, *parts), grad.dtype)
        return dx, None, None, *[None for _ in parts]


class FrozenLinear(QuantizedLinear):
    """A quantized layer to pass gradients through: nothing that it writes out is kept.

    Shapes      x [.., D]; returns [.., F] in the format of x
    Leaves out  `pieces`; a kernel that reads codes and writes nothing out
    """

    def forward(self, x: Tensor) -> Tensor:
        parts = (self.codes, self.scales, self.factor)
        return DequantizeAgain.apply(x, self.format, self.bias, *parts)  # type: ignore[no-any-return]


def quantize_base(
    module: nn.Module, format: str = "nf4", *, keep_wide: bool = False, head: str = "lm_head"
) -> nn.Module:
    """Put codes in the place of every frozen linear weight but the output head's, in place.

    keep_wide   write the layer plainly (memlab.lab.quantized_linear), so that autograd keeps each
                written-out weight until backward
    Raises      ValueError for a format that memlab.lab.quantize does not know
    """
    kind = QuantizedLinear if keep_wide else FrozenLinear
    for parent in list(module.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, nn.Linear) and name != head and not child.weight.requires_grad:
                setattr(parent, name, kind(child, format))
    return module


@torch.no_grad()
def widen_base(module: nn.Module, dtype: torch.dtype = torch.bfloat16) -> nn.Module:
    """The way back: a plain linear layer with the values of its codes for each quantized one."""
    for parent in list(module.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, QuantizedLinear):
                parts = (child.codes, child.scales, child.factor)
                wide_FD = dequantize(Quantized(child.format, *parts), dtype)
                F, D = wide_FD.shape
                plain = nn.Linear(D, F, bias=False, device="meta")
                plain.weight, plain.bias = nn.Parameter(wide_FD, requires_grad=False), child.bias
                setattr(parent, name, plain)
    return module


def upcast(module: nn.Module) -> nn.Module:
    """Everything that is not quantized in fp32, as QLoRA's usual preparation has it, in place.

    Norms, embedding and output head; and the adapters, which read what these have made. The
    written-out weights follow, since a layer writes its weight in the format of its input.

    Source      peft, prepare_model_for_kbit_training in src/peft/utils/other.py
    Leaves out  autocast, under which matrix products return to bf16
    """
    with torch.no_grad():
        for part in module.modules():
            if not isinstance(part, QuantizedLinear):
                for parameter in part.parameters(recurse=False):
                    parameter.data = parameter.data.float()
                for name, buffer in part.named_buffers(recurse=False):
                    setattr(part, name, buffer.float())
    return module
