"""DeepSpeed's config: what `zero_optimization` is told beside its stage, and what it cannot be."""

from __future__ import annotations

from ..base.frozen import dataclass, not_default
from ..units import whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .sharding import Sharding

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
PARAMETERS = "offload_param"  # of stage 3
DEVICE = "cpu"
STAGES = (1, 2)  # which are DeepSpeed's without a word; zero=3 is FSDP2's unless it is said


@dataclass(frozen=True, kw_only=True)
class DeepSpeed:
    """DeepSpeed's ZeRO, whose stage 3 cuts each flattened tensor, and which runs on one rank too.

    reduce_bucket_size  values (not bytes) of the buffer that gradients are copied into before they
                are reduced
    overlap_comm    two such buffers, of which one is filled while the other is reduced; stage 3
                has one buffer all the same
    contiguous_gradients    whether there are such buffers
    prefetch_bucket_size    of stage 3, with "stage3_" before it in the config, as the next three:
                values that are gathered ahead of their use each time a module begins
    param_persistence_threshold     weights of so many values or fewer stay whole
    max_live_parameters     values of whole weights above which nothing is gathered ahead
    max_reuse_distance      a weight stays whole if it is used again before so many values
    sub_group_size      values of a rank's part that the optimizer updates at once
    memory_efficient_linear     of stage 3: whether its own linear layers take the place of
                torch's, which keep each whole weight that they were called with until backward
    offload_optimizer   "cpu": copies in fp32, their gradients and states are on the host, which
                updates them (ZeRO-Offload); None: on the device
    offload_param   of stage 3, "cpu": each rank's part of the weights is on the host, and what is
                gathered is brought to the device for it; None: on the device
    Source      deepspeed, runtime/zero/config.py: DeepSpeedZeroConfig
    Raises      ValueError or TypeError that names the field, its value and what would be right
    """

    reduce_bucket_size: int = 5 * 10**8
    overlap_comm: bool = False
    contiguous_gradients: bool = True
    prefetch_bucket_size: int = 5 * 10**7
    param_persistence_threshold: int = 10**5
    max_live_parameters: int = 10**9
    max_reuse_distance: int = 10**9
    sub_group_size: int = 10**9
    memory_efficient_linear: bool = True
    offload_optimizer: str | None = None
    offload_param: str | None = None

    def __post_init__(self) -> None:
        if whole("reduce_bucket_size", self.reduce_bucket_size) == 0:
            raise ValueError("reduce_bucket_size=0; at least 1 value is needed")
        for field in PARTITIONED:
            whole(field, getattr(self, field))
        if self.sub_group_size == 0:
            raise ValueError("sub_group_size=0; at least 1 value is needed")
        for field in ("overlap_comm", "contiguous_gradients", LINEAR):
            value = getattr(self, field)
            if not isinstance(value, bool):
                raise TypeError(f"{field}={value!r}; True or False is needed")
        for field in (OFFLOAD, PARAMETERS):
            if (value := getattr(self, field)) not in (None, DEVICE):
                raise ValueError(f"{field}={value!r} is not described; known: cpu")

    def check(self, devices: Sharding) -> None:
        """Refuse a key that the stage does not have.

        Raises      ValueError that names the field, its value and what would be right
        """
        if not devices.zero:
            raise ValueError("library='deepspeed' says whose ZeRO it is; zero is 1, 2 or 3")
        for field, value in not_default(self).items():
            if devices.zero != 3:
                check_stage(field, value)


def check_stage(field: str, value: object) -> None:
    """Refuse what stages 1 and 2 are not told.

    Raises      ValueError that names the field and its value
    """
    if field not in BUCKETS and field != OFFLOAD:
        raise ValueError(
            f"{field}={value!r} is of DeepSpeed's stage 3: say zero=3 and library='deepspeed'"
        )
