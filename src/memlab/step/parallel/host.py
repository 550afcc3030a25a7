"""What a rank has on its host, told apart from its device storage by storage.

Of FSDP2 with CPUOffloadPolicy, and of DeepSpeed's ZeRO-Offload, whose pinned blocks are not rounded
here: how large they are depends on which of its two ways it pins memory in.
"""

from __future__ import annotations

from ...sharding import Sharding
from ...terms.host import pinned
from ..core.peak import peak_of
from ..core.result import Peak
from ..core.storage_log import Log, Record

PINNED = ("weights", "gradients")  # CPUOffloadPolicy pins no states


def uses_hosts(devices: Sharding) -> bool:
    """Whether a part of what a rank has is on its host."""
    away = (
        devices.policy.cpu_offload,
        devices.config.offload_optimizer,
        devices.config.offload_param,
    )
    return any(where is not None for where in away)


def on_device(log: Log) -> Log:
    """The log without the host's storages."""
    return log.seen(lambda record: 0 if record.on_host else record.bytes)


def on_host(log: Log, devices: Sharding, backend: str) -> Peak:
    """The host's highest moment.

    Pinned      a block of a power of two for each part, and for each part of a gradient
    Unit        bytes
    """
    blocks = devices.policy.cpu_offload == "pinned" and backend == "cuda"

    def size(record: Record) -> int:
        if not record.on_host:
            return 0
        return pinned(record.bytes) if blocks and record.category in PINNED else record.bytes

    return peak_of(log.seen(size))
