"""Linear layers that compute with four-bit values and train wide ones: a straight-through estimate.

Forward, the weight is rounded to a block format and written out again. Backward, the rounding is
taken for the identity, so that the gradient of the rounded weight is given to the wide one.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from ..lab.quantize import dequantize, quantize


def straight_through(weight_RC: Tensor, format: str = "nvfp4") -> Tensor:
    """The rounded weight, written out in the format of the wide one; its gradient is the weight's.

    Formula     w + (rounded(w) - w).detach()
    Shapes      [R, C] in, a new tensor [R, C] out: b bytes a value more, as long as it lives
    Source      Bengio et al. 2013, arXiv:1308.3432, section 4
    Leaves out  that the sum rounds once more where the wide format is narrow
    """
    rounded = dequantize(quantize(weight_RC, format), weight_RC.dtype)
    return weight_RC + (rounded - weight_RC).detach()


class RoundInBackward(torch.autograd.Function):
    """The same product, keeping the wide weight, which is there anyway, and rounding it twice."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, format: str) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.format = format
        return linear(x, dequantize(quantize(weight, format), weight.dtype))

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (grad,), (x, weight) = grads, ctx.saved_tensors
        rounded = dequantize(quantize(weight, ctx.format), weight.dtype)
        return grad @ rounded, grad.flatten(0, -2).T @ x.flatten(0, -2), None


class StraightThrough(nn.Linear):
    """A linear layer of wide weights that multiplies with rounded ones.

    again       False: autograd keeps what `straight_through` made, until this layer's backward;
                True: nothing is kept, the weight is rounded once more in backward
    Shapes      x [.., C]; returns [.., R]; C is a multiple of the format's block
    Leaves out  a bias; a kernel that multiplies codes
    """

    format = "nvfp4"
    again = False

    def forward(self, x: Tensor) -> Tensor:
        if self.again:
            return RoundInBackward.apply(x, self.weight, self.format)  # type: ignore[no-any-return]
        return linear(x, straight_through(self.weight, self.format))


def round_forward(
    module: nn.Module, *, again: bool = False, format: str = "nvfp4", head: str = "lm_head"
) -> nn.Module:
    """Put a StraightThrough in the place of each linear layer but the output head, in place.

    Raises      ValueError for a layer with a bias
    """
    for parent in list(module.modules()):
        for name, child in list(parent.named_children()):
            if type(child) is nn.Linear and name != head:
                if child.bias is not None:
                    raise ValueError(f"{name} has a bias, which StraightThrough leaves out")
                new = StraightThrough(child.in_features, child.out_features, False, device="meta")
                new.weight, new.again, new.format = child.weight, again, format
                setattr(parent, name, new)
    return module


__all__ = ["RoundInBackward", "StraightThrough", "round_forward", "straight_through"]
