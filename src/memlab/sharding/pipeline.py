"""A pipeline's schedule, and the stages that each rank has."""

from __future__ import annotations

from ..base.frozen import dataclass
from ..units import at_least_one

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..model import Model
    from ..model.tensors import Tensor
    from .sharding import Sharding

SCHEDULES = ("gpipe", "1f1b", "interleaved1f1b", "interleavedzerobubble", "zbvzerobubble")


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """The order in which a pipeline runs its micro-batches, and the stages of each rank.

    name        of torch.distributed.pipelining: gpipe: all micro-batches forward, then all
                backward; 1f1b: one forward, one backward; interleaved1f1b: the same with several
                stages on each rank; interleavedzerobubble: backward in two halves, of inputs and
                of weights, with one stage on each rank (ZB-H1) or several; zbvzerobubble: the
                same with two stages on each rank in the shape of a V
    stages_per_rank     of the interleaved ones: rank r of S has the stages r, r + S, ...; of
                zbvzerobubble 2: r and 2 S - 1 - r
    return_outputs      whether `schedule.step` gives back the outputs of all micro-batches, which
                is its default: the last stage keeps them, and joins them in a copy
    Raises      ValueError or TypeError that names the field, its value and what would be right
    """

    name: str = "1f1b"
    stages_per_rank: int = 1
    return_outputs: bool = True

    def __post_init__(self) -> None:
        if self.name not in SCHEDULES:
            told = f"schedule={self.name!r}"
            raise ValueError(f"{told} is not described; known: {', '.join(SCHEDULES)}")
        if not isinstance(self.return_outputs, bool):
            raise TypeError(f"return_outputs={self.return_outputs!r}; True or False is needed")
        each = at_least_one("stages_per_rank", self.stages_per_rank)
        most = {"interleaved1f1b": each, "interleavedzerobubble": each, "zbvzerobubble": 2}
        least = {"interleaved1f1b": 2, "zbvzerobubble": 2}
        if not least.get(self.name, 1) <= each <= most.get(self.name, 1):
            raise ValueError(
                f"stages_per_rank={each} with schedule={self.name!r}: interleaved1f1b has 2 "
                "stages or more on each rank, interleavedzerobubble 1 or more, zbvzerobubble 2, "
                "the others have 1"
            )

    @property
    def splits_backward(self) -> bool:
        """Whether gradients of inputs and of weights are computed apart: zero bubble."""
        return self.name.endswith("zerobubble")


def stages(devices: Sharding, rank: int) -> list[int]:
    """The stages of a rank, in their order.

    Source      torch, torch/distributed/pipelining/_utils.py:
                generate_stage_to_rank_mapping, style "loop" or "v"
    """
    every = devices.pipeline * devices.schedule.stages_per_rank
    if devices.schedule.name == "zbvzerobubble":
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
