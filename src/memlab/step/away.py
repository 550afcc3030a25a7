"""What a simulated step keeps elsewhere, as memlab.lab.offload and memlab.lab.elsewhere do."""

from __future__ import annotations

from .log import Log, Record, Storage

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from .engine import Engine, Parameter

OFFLOAD = ("saved", "states")


class Away:
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
        self._found: dict[Record, Away] = {}

    def of(self, record: Record) -> Away | None:
        """None where it stays: weights and inputs are on the device anyway."""
        if record.category in ("weights", "buffers", "inputs"):
            return None
        away = self._found.setdefault(record, Away(self._log, record))
        away.readers += 1
        return away


def step_one(engine: Engine, parameter: Parameter) -> None:
    """AdamW([parameter]).step() between its states' arrival and their leaving; the counter stays.

    Source      memlab.lab.elsewhere.Elsewhere
    """
    shape, dtype = parameter.shape, parameter.dtype
    if not parameter.state:
        parameter.state = [engine.new("step", (), "fp32", "optimizer").storage]
    here = [engine.new(name, shape, dtype, "optimizer") for name in ("exp_avg", "exp_avg_sq")]
    temporaries = [engine.new(name, shape, dtype) for name in ("sqrt", "div")]
    del temporaries, here
