"""(IA)³ in a simulated step: what a layer reads or makes is multiplied with a trained vector.

Source      Liu et al. 2022, arXiv:2205.05638; peft, tuners/ia3/layer.py: Linear.forward
"""

from __future__ import annotations

from collections.abc import Mapping

from ..core.graph import Tensor
from ..ops import Ops

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Callable

    Base = Callable[[Ops, Tensor, Mapping[str, Tensor], str], Tensor]


def ia3(f: Ops, x: Tensor, weights: Mapping[str, Tensor], name: str, base: Base) -> Tensor:
    """The product is in the vector's format, and what it is made of stays for the gradient."""
    vector = weights[f"{name}.ia3"]
    inputs = vector.shape[0] == 1  # peft's shapes: [1, D] before the layer, [F, 1] behind it
    previous = x.dtype
    scaling = f.scale(f.seen_as(vector, vector.shape[0] * vector.shape[1]))
    if inputs:
        x = f.to(x, vector.dtype)
        scaled = f.to(f.mul(x, scaling), previous)
        result = base(f, scaled, weights, name)
    else:
        result = base(f, x, weights, name)
        dtype = result.dtype
        result = f.to(f.mul(result, scaling), dtype)
    return result
