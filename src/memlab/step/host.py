"""What a rank of FSDP2 has on its host, told apart from its device storage by storage."""

from __future__ import annotations

from ..recipe.parallelism import Sharding
from ..terms.host import pinned
from .peaks import peak_of
from .result import Peak
from .storage_log import Log, Record

PINNED = ("weights", "gradients")  # CPUOffloadPolicy pins no states


def on_device(log: Log) -> Log:
    """The log without the host's storages."""
    return log.seen(lambda record: 0 if record.on_host else record.bytes)


def on_host(log: Log, devices: Sharding, backend: str) -> Peak:
    """The host's highest moment.

    Pinned      a block of a power of two for each part, and for each part of a gradient
    Unit        bytes
    """
    blocks = devices.cpu_offload == "pinned" and backend == "cuda"

    def size(record: Record) -> int:
        if not record.on_host:
            return 0
        return pinned(record.bytes) if blocks and record.category in PINNED else record.bytes

    return peak_of(log.seen(size))
