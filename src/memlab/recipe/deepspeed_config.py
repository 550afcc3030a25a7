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
OFFLOAD = "offload_optimizer"  # of all stages
DEVICE = "cpu"
CONFIG: tuple[str, ...] = BUCKETS + PARTITIONED  # MicroPython reads no star in a tuple
CONFIG += (LINEAR, OFFLOAD)
STAGES = (1, 2)  # which are DeepSpeed's without a word; zero=3 is FSDP2's unless it is said
LIBRARIES = ("deepspeed",)


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
    if devices.offload_optimizer not in (None, DEVICE):
        raise ValueError(f"{OFFLOAD}={devices.offload_optimizer!r} is not described; known: cpu")
    third = devices.zero == 3 and devices.library == "deepspeed"
    for field, value in devices.buckets.items():
        if field not in BUCKETS and field != OFFLOAD and not third:
            raise ValueError(
                f"{field}={value!r} is of DeepSpeed's stage 3: say zero=3 and library='deepspeed'"
            )
        if devices.zero not in STAGES and not third:
            raise ValueError(
                f"{field}={value!r} is DeepSpeed's: zero=1, zero=2, or zero=3 with "
                "library='deepspeed'; without it the step of zero=3 is FSDP2's"
            )
