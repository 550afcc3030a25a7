"""What DeepSpeed's `zero_optimization` is told beside its stage, and what it cannot be told."""

from __future__ import annotations

from ..units import whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .parallelism import Sharding

# Of all stages; overlap_comm asks for other bytes in 1 and 2 alone.
BUCKETS = ("reduce_bucket_size", "overlap_comm", "contiguous_gradients")
# Of stage 3 alone, where the first four begin with "stage3_".
PARTITIONED = (
    "prefetch_bucket_size",
    "param_persistence_threshold",
    "max_live_parameters",
    "max_reuse_distance",
    "sub_group_size",
)
LINEAR = "memory_efficient_linear"  # of stage 3 too, and no number
CONFIG: tuple[str, ...] = BUCKETS + PARTITIONED  # MicroPython reads no star in a tuple
CONFIG += (LINEAR,)
STAGES = (1, 2)  # which are DeepSpeed's without a word; zero=3 is FSDP2's unless it is said
LIBRARIES = ("deepspeed",)


def key_of(field: str) -> str:
    """The name in zero_optimization of a field of Sharding."""
    ours = field in PARTITIONED and field != "sub_group_size"
    return "stage3_" + field if ours else field


def written(devices: Sharding) -> dict[str, str | int | bool | None]:
    """The zero_optimization that says what these devices do, without what it need not say."""
    said = {key_of(field): value for field, value in devices.buckets.items()}
    told: dict[str, str | int | bool | None] = {"stage": devices.zero}
    told.update(said)
    return told


def auto(hidden: int, stage: int) -> dict[str, int]:
    """What transformers puts in the place of "auto" in zero_optimization, in values.

    hidden      hidden_size of the model's config
    Formula     reduce_bucket_size D^2; of stage 3 stage3_prefetch_bucket_size 0.9 D^2, rounded
                down, and stage3_param_persistence_threshold 10 D
    Source      transformers 5.23, integrations/deepspeed.py: trainer_config_finalize
    """
    values = {"reduce_bucket_size": hidden * hidden}
    if stage == 3:
        values["prefetch_bucket_size"] = int(0.9 * hidden * hidden)
        values["param_persistence_threshold"] = 10 * hidden
    return values


def check(devices: Sharding) -> None:
    """Refuse a key that the stage does not have.

    Raises      ValueError or TypeError that names the field, its value and what would be right
    """
    if devices.library is not None and devices.library not in LIBRARIES:
        known = ", ".join(LIBRARIES)
        raise ValueError(f"library={devices.library!r} is not described; known: {known}")
    if devices.library and not devices.zero:
        raise ValueError(f"library={devices.library!r} says whose ZeRO it is; zero is 1, 2 or 3")
    if whole("reduce_bucket_size", devices.reduce_bucket_size) == 0:
        raise ValueError("reduce_bucket_size=0; at least 1 value is needed")
    for field in PARTITIONED:
        whole(field, getattr(devices, field))
    if devices.sub_group_size == 0:
        raise ValueError("sub_group_size=0; at least 1 value is needed")
    for field in ("overlap_comm", "contiguous_gradients", LINEAR):
        value = getattr(devices, field)
        if not isinstance(value, bool):
            raise TypeError(f"{field}={value!r}; True or False is needed")
    third = devices.zero == 3 and devices.library == "deepspeed"
    for field, value in devices.buckets.items():
        if field not in BUCKETS and not third:
            raise ValueError(
                f"{field}={value!r} is of DeepSpeed's stage 3: say zero=3 and library='deepspeed'"
            )
        if devices.zero not in STAGES and not third:
            raise ValueError(
                f"{field}={value!r} is DeepSpeed's: zero=1, zero=2, or zero=3 with "
                "library='deepspeed'; without it the step of zero=3 is FSDP2's"
            )
