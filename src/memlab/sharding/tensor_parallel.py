"""Tensor parallelism's plan: by which axis ranks cut each matrix."""

from __future__ import annotations

from ..base.frozen import dataclass
from ..base.message import Message
from ..families import proven, record_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..model import Model
    from ..model.tensors import Tensor
    from .sharding import Sharding

PLANS = ("torch", "transformers")  # whose plan it is
# By which axis of [outputs, inputs] tensor parallelism cuts a linear layer of each layer.
COLUMNS = ("q", "k", "v", "qkv", "gate", "up", "gate_up")
ROWS = ("out", "down")
# The same of all experts of a layer, [X, outputs, inputs]: by slices of each expert's width.
OF_EXPERTS = {"experts_up": 1, "experts_down": 2}


@dataclass(frozen=True, kw_only=True)
class TensorPlan:
    """Which matrices tensor parallelism cuts, and what else.

    whose       torch: parallelize_module, with embedding and head cut by words and the loss under
                loss_parallel; transformers: tp_plan="auto", which cuts the same and gathers all
                logits on every rank, and cuts each expert of a mixture in its width
    sequence    the norms and the stream between them are divided too, by tokens (SequenceParallel)
    Raises      ValueError or TypeError that names the field, its value and what would be right
    """

    whose: str = "torch"
    sequence: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.sequence, bool):
            raise TypeError(f"sequence={self.sequence!r}; True or False is needed")
        if self.whose not in PLANS:
            raise ValueError(f"plan={self.whose!r} is not described; known: {', '.join(PLANS)}")
        if self.sequence and self.whose == "transformers":
            raise ValueError("sequence=True with plan='transformers': tp_plan=\"auto\" has none")


def axis(tensor: Tensor, model: Model) -> int | None:
    """The dimension that tensor parallelism cuts; None for what every rank holds whole."""
    if tensor.name in ("embedding", "lm_head"):
        return 0
    words = tensor.name.split(".")
    bias = words[-1] == "bias"
    name = words[-2] if bias else words[-1]
    if name in OF_EXPERTS:
        return None if bias and name == "experts_down" else OF_EXPERTS[name]
    cut = of_linear(name, model)
    if cut is None or (cut == 1 and bias):
        return None
    return 1 - cut if model.conv1d and not bias else cut


def of_linear(name: str, model: Model) -> int | None:
    """Of a linear layer's weight [outputs, inputs], by its name: 0, 1, or None: it stays whole."""
    if name.startswith("shared_"):
        if record_of(model.family).shared_whole:
            return None
        name = name[len("shared_") :]
    return 0 if name in COLUMNS else 1 if name in ROWS else None


def one_rank(model: Model, ranks: int) -> Model:
    """The model whose layers are as wide as one rank's part."""
    shared = 1 if record_of(model.family).shared_whole else ranks
    experts = {"expert_ff": model.expert_ff // ranks, "shared_ff": model.shared_ff // shared}
    return model.replace(
        name=model.name,
        heads=model.heads // ranks,
        kv_heads=model.kv_heads // ranks,
        head_dim=model.head_dim,
        d_ff=model.d_ff // ranks,
        embed_dim=model.embed_dim,
        config={},
        **experts,
    )


def check_mixture(devices: Sharding, model: Model) -> None:
    """Refuse experts that no plan cuts, or that do not come out even.

    Raises      ValueError that names the plan, the family or the width
    """
    if not model.experts or devices.tensor == 1:
        return
    if devices.plan.whose != "transformers":
        pattern = "tensor={tensor}: the experts of a mixture are cut by plan='transformers' alone"
        raise ValueError(Message(pattern, tensor=devices.tensor))
    if not record_of(model.family).proves("tensor_parallel"):
        known = [name for name in proven("tensor_parallel") if record_of(name).mixture]
        raise ValueError(
            f"transformers' plan for {model.family} with tensor={devices.tensor} is not described; "
            f"known: {', '.join(known)}"
        )
    shared = 0 if record_of(model.family).shared_whole else model.shared_ff
    widths = (("M", model.expert_ff, "an expert's width"), ("M'", shared, "the shared expert's"))
    for letter, size, what in widths:
        if size % devices.tensor:
            pattern = "tensor={tensor} does not divide {letter}={size} ({what})"
            how = {"letter": letter, "size": size, "what": what}
            raise ValueError(Message(pattern, tensor=devices.tensor, **how))
