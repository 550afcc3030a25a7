"""What ranks that divide matrices are told, and by which axis they cut each."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..model import Model
    from ..model.tensors import Tensor
    from .parallelism import Sharding

DIVIDED = ("sequence", "plan")
PLANS = ("torch", "transformers")  # whose plan it is
# By which axis of [outputs, inputs] tensor parallelism cuts a linear layer of each layer.
COLUMNS = ("q", "k", "v", "qkv", "gate", "up", "gate_up")
ROWS = ("out", "down")


def check(devices: Sharding) -> None:
    """Refuse a plan that is not described, or one of matrices that nobody divides.

    Raises      ValueError or TypeError that names the field, its value and what would be right
    """
    if not isinstance(devices.sequence, bool):
        raise TypeError(f"sequence={devices.sequence!r}; True or False is needed")
    if devices.plan not in PLANS:
        raise ValueError(f"plan={devices.plan!r} is not described; known: {', '.join(PLANS)}")
    for field in DIVIDED:
        value = getattr(devices, field)
        if value != getattr(type(devices), field) and devices.tensor == 1:
            raise ValueError(f"{field}={value!r} is tensor parallelism's, of 2 ranks or more")
    if devices.sequence and devices.plan == "transformers":
        raise ValueError("sequence=True with plan='transformers': tp_plan=\"auto\" has none")


def axis(tensor: Tensor, model: Model) -> int | None:
    """The dimension that tensor parallelism cuts; None for what every rank holds whole."""
    if tensor.name in ("embedding", "lm_head"):
        return 0
    words = tensor.name.split(".")
    bias = words[-1] == "bias"
    name = words[-2] if bias else words[-1]
    if name in COLUMNS:
        return 1 if model.conv1d and not bias else 0
    if name in ROWS and not bias:
        return 0 if model.conv1d else 1
    return None
