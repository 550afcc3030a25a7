"""What a pipeline is told beside its ranks: its schedule, and the stages that each rank has."""

from __future__ import annotations

from ..units import whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..model import Model
    from ..model.tensors import Tensor
    from .parallelism import Sharding

PIPELINED = ("schedule", "stages_per_rank", "return_outputs")
SCHEDULES = ("gpipe", "1f1b", "interleaved1f1b", "interleavedzerobubble", "zbvzerobubble")


def check(devices: Sharding) -> None:
    """Refuse a schedule that is not described, and stages that it does not have.

    Raises      ValueError or TypeError that names the field, its value and what would be right
    """
    if devices.schedule not in SCHEDULES:
        said = f"schedule={devices.schedule!r}"
        raise ValueError(f"{said} is not described; known: {', '.join(SCHEDULES)}")
    if not isinstance(devices.return_outputs, bool):
        raise TypeError(f"return_outputs={devices.return_outputs!r}; True or False is needed")
    each = whole("stages_per_rank", devices.stages_per_rank)
    if each == 0:
        raise ValueError("stages_per_rank=0; at least 1 is needed")
    for field in PIPELINED:
        value = getattr(devices, field)
        if value != getattr(type(devices), field) and devices.pipeline == 1:
            raise ValueError(f"{field}={value!r} is a pipeline's, of 2 ranks or more")
    most = {"interleaved1f1b": each, "interleavedzerobubble": each, "zbvzerobubble": 2}
    least = {"interleaved1f1b": 2, "zbvzerobubble": 2}
    if not least.get(devices.schedule, 1) <= each <= most.get(devices.schedule, 1):
        raise ValueError(
            f"stages_per_rank={each} with schedule={devices.schedule!r}: interleaved1f1b has 2 "
            "stages or more on each rank, interleavedzerobubble 1 or more, zbvzerobubble 2, the "
            "others have 1"
        )


def stages(devices: Sharding, rank: int) -> list[int]:
    """The stages of a rank, in their order.

    Source      torch 2.13, torch/distributed/pipelining/_utils.py:
                generate_stage_to_rank_mapping, style "loop" or "v"
    """
    every = devices.pipeline * devices.stages_per_rank
    if devices.schedule == "zbvzerobubble":
        return [rank, every - 1 - rank]
    return list(range(rank, every, devices.pipeline))


def copies(tensor: Tensor, model: Model, layers: Sequence[int]) -> int:
    """How many of these layers have this tensor, which is one of a layer's."""
    part = tensor.name.split("feed_forward.")  # a norm's name ends in it otherwise
    if model.experts and len(part) > 1:
        mixed = part[1].startswith(("router", "experts", "shared"))
        return sum((layer not in model.dense_layers) == mixed for layer in layers)
    # What only every second layer has (a value embedding), the last layer has too.
    every = 1 if tensor.copies == model.layers else 2
    return sum((model.layers - 1 - layer) % every == 0 for layer in layers)
