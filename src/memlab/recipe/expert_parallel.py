"""What ranks that divide a mixture's experts are told, and what they cannot be told."""

from __future__ import annotations

from ..terms.sharding import row_shard
from ..units import whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..model import Model
    from .parallelism import Sharding

EXPERTS = ("expert", "routing")
ROUTINGS = ("even", "fullest")


def check(devices: Sharding) -> None:
    """Refuse groups of ranks that transformers' DistributedConfig(fsdp_size, ep_size) has not.

    Raises      ValueError that names the field, its value and what would be right
    """
    experts = whole("expert", devices.expert)
    if experts == 0:
        raise ValueError("expert=0; at least 1 is needed")
    if devices.routing not in ROUTINGS:
        said = f"routing={devices.routing!r}"
        raise ValueError(f"{said} is not described; known: {', '.join(ROUTINGS)}")
    if experts == 1:
        if devices.routing != ROUTINGS[0]:
            raise ValueError(f"routing={devices.routing!r} is between expert ranks, of 2 or more")
        return
    if devices.zero != 3:
        raise ValueError(f"expert={experts} with zero={devices.zero}: the rest is FSDP2's, zero=3")
    if devices.library:
        raise ValueError(
            f"expert={experts} with library={devices.library!r}: the rest is FSDP2's, library=None"
        )
    if devices.data % experts:
        raise ValueError(f"expert={experts} does not divide data={devices.data} (ranks)")
    if devices.ranks != devices.data or devices.replicas > 1:
        raise ValueError(f"expert={experts} beside other divisions of the model: describe one")


def check_model(devices: Sharding, model: Model) -> None:
    """Refuse a model whose experts cannot be divided so.

    Raises      ValueError that names it
    """
    if devices.expert > 1 and (not model.experts or model.experts % devices.expert):
        raise ValueError(f"expert={devices.expert} does not divide X={model.experts} (experts)")


def part(shape: tuple[int, ...], *, devices: Sharding) -> tuple[int, ...]:
    """Of a tensor of all experts [X, ...] what rank 0 stores.

    Formula     X / E experts, cut by rows among the R / E ranks that have the same ones
    Source      transformers 5.23, distributed/utils.py: TransformersDeviceMesh
    """
    mine = (shape[0] // devices.expert,) + shape[1:]  # as MicroPython has it
    return row_shard(mine, ranks=devices.sharers // devices.expert)
