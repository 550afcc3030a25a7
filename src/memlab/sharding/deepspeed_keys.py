"""The keys of a ds_config.json's zero_optimization, and what "auto" stands for there."""

from __future__ import annotations

from ..base.frozen import not_default
from .deepspeed import OFFLOAD, PARAMETERS, PARTITIONED
from .sharding import Sharding

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any


def key_of(field: str) -> str:
    """The name in zero_optimization of a field of Sharding."""
    ours = field in PARTITIONED and field != "sub_group_size"
    return "stage3_" + field if ours else field


def written(devices: Sharding) -> dict[str, Any]:
    """The zero_optimization that says what these devices do, without what it need not say."""
    said = {key_of(field): value for field, value in not_default(devices.config).items()}
    told: dict[str, Any] = {"stage": devices.zero}
    told.update(said)
    for field in (OFFLOAD, PARAMETERS):
        if device := getattr(devices.config, field):
            told[field] = {"device": device, "pin_memory": True}
    return told


def auto(hidden: int, stage: int) -> dict[str, int]:
    """What transformers puts in the place of "auto" in zero_optimization, in values.

    hidden      hidden_size of the model's config
    Formula     reduce_bucket_size D^2; of stage 3 stage3_prefetch_bucket_size 0.9 D^2, rounded
                down, and stage3_param_persistence_threshold 10 D
    Source      transformers, integrations/deepspeed.py: trainer_config_finalize
    """
    values = {"reduce_bucket_size": hidden * hidden}
    if stage == 3:
        values["prefetch_bucket_size"] = int(0.9 * hidden * hidden)
        values["param_persistence_threshold"] = 10 * hidden
    return values
