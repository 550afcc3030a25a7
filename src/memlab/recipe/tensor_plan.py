"""What ranks that divide matrices are told, and by which axis they cut each."""

from __future__ import annotations

from ..base.message import Message

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
# The same of all experts of a layer, [X, outputs, inputs]: by slices of each expert's width.
OF_EXPERTS = {"experts_up": 1, "experts_down": 2}
# Families whose experts transformers' plan cuts, and one whose shared expert it leaves whole.
MIXTURES = ("qwen3_moe", "mixtral", "qwen2_moe", "glm4_moe")
WHOLE_SHARED = ("qwen2_moe",)


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
    if name in OF_EXPERTS:
        return None if bias and name == "experts_down" else OF_EXPERTS[name]
    cut = of_linear(name, model)
    if cut is None or (cut == 1 and bias):
        return None
    return 1 - cut if model.conv1d and not bias else cut


def of_linear(name: str, model: Model) -> int | None:
    """Of a linear layer's weight [outputs, inputs], by its name: 0, 1, or None: it stays whole."""
    if name.startswith("shared_"):
        if model.family in WHOLE_SHARED:
            return None
        name = name[len("shared_") :]
    return 0 if name in COLUMNS else 1 if name in ROWS else None


def one_rank(model: Model, ranks: int) -> Model:
    """The model whose layers are as wide as one rank's part."""
    shared = 1 if model.family in WHOLE_SHARED else ranks
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
    if devices.plan != "transformers":
        pattern = "tensor={tensor}: the experts of a mixture are cut by plan='transformers' alone"
        raise ValueError(Message(pattern, tensor=devices.tensor))
    if model.family not in MIXTURES:
        raise ValueError(
            f"transformers' plan for {model.family} with tensor={devices.tensor} is not described; "
            f"known: {', '.join(MIXTURES)}"
        )
    shared = 0 if model.family in WHOLE_SHARED else model.shared_ff
    widths = (("M", model.expert_ff, "an expert's width"), ("M'", shared, "the shared expert's"))
    for letter, size, what in widths:
        if size % devices.tensor:
            pattern = "tensor={tensor} does not divide {letter}={size} ({what})"
            how = {"letter": letter, "size": size, "what": what}
            raise ValueError(Message(pattern, tensor=devices.tensor, **how))
