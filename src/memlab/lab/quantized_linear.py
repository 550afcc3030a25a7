"""A linear layer whose weight is stored quantized and written out when it is used."""

import torch.nn.functional as F
from torch import Tensor, nn

from ..formats import Format
from ..units import whole
from .quantize import Quantized, dequantize, quantize


class QuantizedLinear(nn.Module):
    """A linear layer that keeps its weight quantized and widens it each time it is used.

    Shapes      x [.., C]; returns [.., R] in the format of x
    pieces      the weight is widened in so many parts, one after the other; 1: all of it at once
    Leaves out  training, and a kernel that widens a tile where no memory is needed for it
    Raises      ValueError where R does not divide into the pieces
    """

    def __init__(self, linear: nn.Linear, format: str | Format, *, pieces: int = 1) -> None:
        super().__init__()
        if whole("pieces", pieces) == 0 or linear.out_features % pieces:
            raise ValueError(f"{linear.out_features} rows do not divide into pieces={pieces}")
        q = quantize(linear.weight, format)
        self.format, self.pieces, self.bias = q.format, pieces, linear.bias
        # Parameters, so that they count as weights; an integer has no gradient.
        self.codes, self.scales = (nn.Parameter(t, requires_grad=False) for t in q[1:3])
        self.factor = None if q.factor is None else nn.Parameter(q.factor, requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        if self.pieces == 1:
            q = Quantized(self.format, self.codes, self.scales, self.factor)
            return F.linear(x, dequantize(q, x.dtype), self.bias)
        y = x.new_empty(*x.shape[:-1], len(self.codes))
        parts = (t.chunk(self.pieces) for t in (self.codes, self.scales))
        for codes, scales, place in zip(*parts, y.chunk(self.pieces, -1), strict=True):
            q = Quantized(self.format, codes, scales, self.factor)
            place.copy_(F.linear(x, dequantize(q, x.dtype)))
        return y if self.bias is None else y.add_(self.bias)


def quantize_(
    net: nn.Module, format: str | Format, *, skip: tuple[str, ...] = (), pieces: int = 1
) -> nn.Module:
    """Put a QuantizedLinear in the place of every linear layer whose name is not in `skip`."""
    for name, part in net.named_children():
        if isinstance(part, nn.Linear) and name not in skip:
            setattr(net, name, QuantizedLinear(part, format, pieces=pieces))
        else:
            quantize_(part, format, skip=skip, pieces=pieces)
    return net
