"""What a simulated step keeps on the host: memlab.lab.offload, memlab.lab.offloaded_optimizer."""

from __future__ import annotations

from .storage_log import Log, Record, Storage


class OffloadedSaved:
    """Stands in the graph where a storage is on a host, for all who saved a view of it.

    It comes back for the first of them, as memory of its own, and stays until the last.
    """

    __slots__ = ("log", "readers", "record", "storage")

    def __init__(self, log: Log, record: Record) -> None:
        self.log, self.record, self.readers = log, record, 0
        self.storage: Storage | None = None

    def back(self) -> Storage:
        storage, was = self.storage, self.record
        if storage is None:
            again = Record("bring", was.shape, was.dtype, was.category, was.part)
            again.bytes = was.bytes
            storage = Storage(self.log, again)
        self.readers -= 1
        self.storage = storage if self.readers > 0 else None
        return storage


class Offloaded:
    """One `Away` for each storage that is saved."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._found: dict[Record, OffloadedSaved] = {}

    def of(self, record: Record) -> OffloadedSaved | None:
        """None where it stays: weights and inputs are on the device anyway."""
        if record.category in ("weights", "buffers", "inputs"):
            return None
        away = self._found.setdefault(record, OffloadedSaved(self._log, record))
        away.readers += 1
        return away
