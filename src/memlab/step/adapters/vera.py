"""VeRA in a simulated step: shared frozen matrices between two trained vectors.

Source      Kopiczko et al. 2024, arXiv:2310.11454; peft, tuners/vera/layer.py: Linear.forward
"""

from __future__ import annotations

from collections.abc import Mapping

from ...adapters import Vera
from ...model import Model
from ..core.graph import Tensor
from ..ops import Ops
from ..ops.dropout import dropout

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Callable

    Base = Callable[[Ops, Tensor, Mapping[str, Tensor], str], Tensor]


def shared(f: Ops, adapter: Vera, model: Model, dtype: str) -> tuple[Tensor, Tensor]:
    """The two matrices of all layers, buffers of the model."""
    outputs, inputs = adapter.shared(model)
    first = f.new("vera_A", (adapter.rank, inputs), dtype, "buffers")
    return first, f.new("vera_B", (outputs, adapter.rank), dtype, "buffers")


def vera(f: Ops, x: Tensor, weights: Mapping[str, Tensor], name: str, base: Base) -> Tensor:
    """Both frozen products stay, for the vectors' gradients; of x nothing does."""
    previous = x.dtype
    result = base(f, x, weights, name)
    dtype = result.dtype
    after, before = weights[f"{name}.lambda_b"], weights[f"{name}.lambda_d"]
    rank, (outputs,) = before.shape[0], after.shape
    inputs = x.shape[-1]
    a, b = (
        Tensor(shape, matrix.dtype, matrix.storage)
        for shape, matrix in zip(((rank, inputs), (outputs, rank)), f.shared, strict=True)
    )
    x = f.to(x, before.dtype)
    thin = f.linear(dropout(f, x, f.lora_dropout), a)
    result = f.add(result, f.mul(after, f.linear(f.mul(before, thin), b)))
    result = f.to(result, dtype)
    result = f.to(result, previous)
    return result
