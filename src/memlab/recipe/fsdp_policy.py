"""What FSDP2's `fully_shard` is told beside its ranks, and what it cannot be told."""

from __future__ import annotations

from ..units import whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .parallelism import Sharding

POLICY = (
    "param_dtype",
    "reduce_dtype",
    "reshard_after_forward",
    "gradient_sync",
    "replicas",
    "cpu_offload",
)
# The words that they take.
DTYPES = ("fp32", "bf16", "fp16")
SYNCS = ("every", "last", "shards")
HOSTS = ("pinned", "pageable")


def check(devices: Sharding) -> None:
    """Refuse a policy that no call of `fully_shard` has.

    Raises      ValueError or TypeError that names the field, its value and what would be right
    """
    for field, known in (
        ("param_dtype", DTYPES),
        ("reduce_dtype", DTYPES),
        ("cpu_offload", HOSTS),
    ):
        value = getattr(devices, field)
        if value is not None and value not in known:
            raise ValueError(f"{field}={value!r} is not described; known: {', '.join(known)}")
    if devices.gradient_sync not in SYNCS:
        said = f"gradient_sync={devices.gradient_sync!r}"
        raise ValueError(f"{said} is not described; known: {', '.join(SYNCS)}")
    if not isinstance(devices.reshard_after_forward, bool):
        value = devices.reshard_after_forward
        raise TypeError(f"reshard_after_forward={value!r}; True or False is needed")
    if whole("replicas", devices.replicas) == 0:
        raise ValueError("replicas=0; at least 1 is needed")
    for field, value in devices.policy.items():
        if devices.zero != 3 or devices.library:
            without = f" without library={devices.library!r}" if devices.library else ""
            raise ValueError(f"{field}={value!r} is FSDP2's, which is zero=3{without}")
    if devices.replicas > 1:
        _check_replicas(devices)
    elif devices.gradient_sync == "shards":
        raise ValueError("gradient_sync='shards' is between replicas, which are 2 or more")


def _check_replicas(devices: Sharding) -> None:
    data, replicas = devices.data, devices.replicas
    if data % replicas or data == replicas:
        raise ValueError(
            f"replicas={replicas} of data={data} ranks: groups of the same size, of 2 ranks or "
            "more, are needed"
        )
    if devices.ranks != data:
        raise ValueError(f"replicas={replicas} beside other divisions of the model: describe one")
