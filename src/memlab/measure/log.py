"""The event log of a tracker: every storage born, met, resized and freed, in order, replayable."""

import itertools
import threading
from collections import deque
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Event:
    """One line of the log.

    kind        alloc (born under the tracker), seen (existed before), resize, free
    bytes       the change: negative for a free; total = the total before + bytes
    op, phase   the operator that ran, and the name given with `Tracker.phase`
    ident       the number of the storage: `Tracker.records[ident]` tells more
    """

    index: int
    kind: str
    bytes: int
    total: int
    op: str
    phase: str
    ident: int


@dataclass(slots=True)
class Record:
    """What is known of one storage: its category may still change ("what it turned out to be").

    shape, dtype    of the first tensor through which it was met
    """

    ident: int
    category: str
    rank: int
    bytes: int
    device: str
    dtype: str
    shape: tuple[int, ...]
    op: str


class Log:
    """Running total, peak and events.

    A storage may die at any moment, even while an event is being written (garbage collection,
    autograd's own threads). So whoever reports only queues a note, and whoever is first to hold
    the lock writes all of them down: no event is lost, none is written into another.
    """

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.total = self.peak = 0
        self.peak_index = -1
        self._sizes: dict[int, int] = {}
        self._notes: deque[tuple[str, int, int, str, str]] = deque()
        self._lock = threading.Lock()

    def note(self, kind: str, ident: int, size: int, op: str, phase: str) -> None:
        """Storage `ident` now holds `size` bytes."""
        self._notes.append((kind, ident, size, op, phase))
        self.settle()

    def settle(self) -> None:
        while self._notes and self._lock.acquire(blocking=False):
            try:
                while self._notes:
                    self._write(*self._notes.popleft())
            finally:
                self._lock.release()

    def _write(self, kind: str, ident: int, size: int, op: str, phase: str) -> None:
        change = size - self._sizes.pop(ident, 0)
        if kind != "free":
            self._sizes[ident] = size
        self.total += change
        index = len(self.events)
        self.events.append(Event(index, kind, change, self.total, op, phase, ident))
        if self.total > self.peak:
            self.peak, self.peak_index = self.total, index

    def reset_peak(self) -> None:
        self.settle()
        self.peak, self.peak_index = self.total, len(self.events) - 1

    def alive(self, at: int | None) -> dict[int, int]:
        """Bytes by ident right after event `at`; -1 is before the first, None is now."""
        self.settle()
        if at is None:
            return dict(self._sizes)
        sizes: dict[int, int] = {}
        for event in itertools.islice(self.events, at + 1):
            size = sizes.pop(event.ident, 0) + event.bytes
            if event.kind != "free":
                sizes[event.ident] = size
        return sizes
