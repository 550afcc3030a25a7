"""Ranks that divide a mixture's experts, and what they cannot be told."""

from __future__ import annotations

from ..base.frozen import dataclass
from ..terms.sharding import row_shard
from ..units import at_least_one

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..model import Model
    from .sharding import Sharding

ROUTINGS = ("even", "fullest")


@dataclass(frozen=True, kw_only=True)
class ExpertParallel:
    """Which ranks of FSDP2 divide the experts of a mixture between them.

    ranks       groups of so many ranks have whole experts each; tokens travel to them. Ranks that
                have the same experts divide those between them, and all of data the rest, as
                transformers' DistributedConfig(fsdp_size=data, ep_size=ranks) does with zero=3
    routing     what a router would decide by values: even: each expert is chosen as often as the
                others; fullest: each token of each rank asks for as many experts of this rank as
                it can, which is as much as can arrive
    Raises      ValueError that names the field, its value and what would be right
    """

    ranks: int = 1
    routing: str = ROUTINGS[0]

    def __post_init__(self) -> None:
        at_least_one("expert", self.ranks)
        if self.routing not in ROUTINGS:
            told = f"routing={self.routing!r}"
            raise ValueError(f"{told} is not described; known: {', '.join(ROUTINGS)}")
        if self.ranks == 1 and self.routing != ROUTINGS[0]:
            raise ValueError(f"routing={self.routing!r} is between expert ranks, of 2 or more")

    def check(self, devices: Sharding) -> None:
        """Refuse groups of ranks that transformers' DistributedConfig(fsdp_size, ep_size) has not.

        Raises      ValueError that names the field, its value and what would be right
        """
        experts = self.ranks
        if experts == 1:
            return
        if devices.zero != 3:
            told = f"expert={experts} with zero={devices.zero}"
            raise ValueError(f"{told}: the rest is FSDP2's, zero=3")
        if devices.by_deepspeed:
            told = f"expert={experts} with library='deepspeed'"
            raise ValueError(f"{told}: the rest is FSDP2's, library=None")
        if devices.data % experts:
            raise ValueError(f"expert={experts} does not divide data={devices.data} (ranks)")
        if devices.ranks != devices.data or devices.policy.replicas > 1:
            raise ValueError(f"expert={experts} beside other divisions of the model: describe one")


def check_model(devices: Sharding, model: Model) -> None:
    """Refuse a model whose experts cannot be divided so.

    Raises      ValueError that names it
    """
    if devices.experts.ranks > 1 and (not model.experts or model.experts % devices.experts.ranks):
        raise ValueError(
            f"expert={devices.experts.ranks} does not divide X={model.experts} (experts)"
        )


def part(shape: tuple[int, ...], *, devices: Sharding) -> tuple[int, ...]:
    """Of a tensor of all experts [X, ...] what rank 0 stores.

    Formula     X / E experts, cut by rows among the R / E ranks that have the same ones
    Source      transformers, distributed/utils.py: TransformersDeviceMesh
    """
    mine = (shape[0] // devices.experts.ranks,) + shape[1:]  # as MicroPython has it
    return row_shard(mine, ranks=devices.sharers // devices.experts.ranks)
