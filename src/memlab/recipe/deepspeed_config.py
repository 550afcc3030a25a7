"""What DeepSpeed's `zero_optimization` is told beside its stage, and what it cannot be told."""

from __future__ import annotations

from ..units import whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .parallelism import Sharding

CONFIG = ("reduce_bucket_size", "overlap_comm", "contiguous_gradients")
STAGES = (1, 2)  # of which a step is described; that of zero=3 is FSDP2's


def check(devices: Sharding) -> None:
    """Refuse a key that the stage does not have.

    Raises      ValueError or TypeError that names the field, its value and what would be right
    """
    if whole("reduce_bucket_size", devices.reduce_bucket_size) == 0:
        raise ValueError("reduce_bucket_size=0; at least 1 value is needed")
    for field in ("overlap_comm", "contiguous_gradients"):
        value = getattr(devices, field)
        if not isinstance(value, bool):
            raise TypeError(f"{field}={value!r}; True or False is needed")
    for field, value in devices.buckets.items():
        if devices.zero not in STAGES:
            raise ValueError(
                f"{field}={value!r} is DeepSpeed's, of which zero=1 and zero=2 are described; the "
                "step of zero=3 is FSDP2's"
            )
