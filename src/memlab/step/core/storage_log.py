"""Storages and the log of a simulated step: what was allocated and freed, in order.

Letters     a size is a `Dim`: a whole number that knows its letter, such as T or N·H
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from ...base.gc_paused import no_garbage

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

SIZES = {"fp32": 4, "bf16": 2, "fp16": 2, "int64": 8, "int32": 4, "bool": 1, "uint8": 1}
SIZES["complex64"] = SIZES["fp64"] = 8


class Dim(int):
    """A whole number with the letters that it stands for."""

    letters: str

    def __new__(cls, letters: str, value: int) -> Dim:
        made = super().__new__(cls, value)
        made.letters = letters
        return made


def count(shape: Sequence[int]) -> int:
    """How many values a tensor of this shape holds."""
    product = 1
    for size in shape:
        product *= size
    return product


class Record:
    """What is known of one storage; the category may still change, as with memlab.measure.

    on_host     whether it is a host's, beside those of a device: `Log.seen` tells them apart
    stream      of CUDA, on which it is made; "": the program's own
    """

    __slots__ = ("bytes", "category", "dtype", "name", "on_host", "op", "part", "shape", "stream")

    def __init__(self, op: str, shape: tuple[int, ...], dtype: str, category: str, part: str):
        self.bytes = count(shape) * SIZES[dtype]
        self.op, self.shape, self.dtype, self.category, self.part = op, shape, dtype, category, part
        self.name, self.on_host, self.stream = op, False, ""


class Storage:
    """Memory; goes when nothing refers to it any more."""

    __slots__ = ("log", "record")

    def __init__(self, log: Log, record: Record) -> None:
        self.log, self.record = log, record
        log.note(record, record.bytes)

    def __del__(self) -> None:
        if hasattr(self, "log"):  # Ctrl-C may come before it has one
            self.log.note(self.record, -self.record.bytes)


class Log:
    """Every allocation (+) and free (-) in order, with the total after it.

    An event is (record, bytes, total); for layers that are not simulated, (None, bytes, total) and
    an entry in `repeats`: the events from `first` to before `last`, `times` more.
    """

    def __init__(self) -> None:
        self.events: list[tuple[Record | None, int, int]] = []
        self.repeats: dict[int, tuple[int, int, int]] = {}
        self.marks: dict[str, int] = {}
        self.entered: list[tuple[int, int | None]] = []  # which layer begins before which event
        self.total = 0
        self.closed = False
        self._sums: dict[Any, dict[int, dict[str, int]]] = {}  # by key, of the moments asked for
        self._spans: dict[Any, dict[Any, dict[str, int]]] = {}  # the same of events that repeat

    def note(self, record: Record | None, change: int) -> None:
        if not self.closed:
            self.total += change
            self.events.append((record, change, self.total))

    def repeat(self, first: int, last: int, times: int) -> None:
        """What the events [first, last) added, `times` more."""
        if not times:
            return
        change = sum(change for _, change, _ in self.events[first:last])
        self.repeats[len(self.events)] = (first, last, times)
        self.note(None, change * times)

    def undo(self, first: int, last: int) -> None:
        """Take back what layers that are not simulated added in the events [first, last)."""
        for index, (start, stop, times) in list(self.repeats.items()):
            if first <= index < last:
                self.repeats[len(self.events)] = (start, stop, -times)
                self.note(None, -self.events[index][1])

    def mark(self, name: str) -> None:
        """Name the moment before the next event."""
        self.marks[name] = len(self.events)

    def enter(self, layer: int | None) -> None:
        """From the next event on this layer is computed, forward or backward; None: none is."""
        self.entered.append((len(self.events), layer))

    def replay(self, capacity: int | None, expandable: bool) -> Any:
        """All events in PyTorch's caching allocator, which has blocks of each stream apart.

        Raises      ValueError for a log in which layers are only counted
        """
        from ...terms.replay import replay  # only who asks for reserved bytes needs it

        if self.repeats:
            raise ValueError("layers are missing; simulate with every_layer=True has all of them")
        events = (
            ("alloc" if change > 0 else "free", id(record), abs(change))
            for record, change, _ in self.events
            if change
        )
        streams: dict[Hashable, str] = {
            id(r): r.stream for r, _, _ in self.events if r is not None and r.stream
        }
        with no_garbage(collect=False):  # none is made, and many objects are
            return replay(events, streams=streams, capacity=capacity, expandable=expandable)

    def seen(self, size: Callable[[Record], int]) -> Log:
        """The same events in the same order, each storage as large as `size` says, or nothing."""
        other = Log()
        for index, (record, change, _) in enumerate(self.events):
            if record is not None:
                own = size(record)
                other.note(record, own if change > 0 else -own)
                continue
            first, last, times = other.repeats[index] = self.repeats[index]
            other.note(None, times * sum(change for _, change, _ in other.events[first:last]))
        other.marks, other.entered = self.marks, self.entered
        return other

    def contents(self, at: int, key: Callable[[Record], str]) -> dict[str, int]:
        """Bytes alive before event `at`, by a key of their records.

        A step is asked about ten moments. When it is over no record changes any more, and each
        moment goes on from the nearest one before it.
        """
        known = self._sums.setdefault(key, {}) if self.closed else {}
        spans = self._spans.setdefault(key, {}) if self.closed else {}
        start = max((before for before in known if before <= at), default=0)
        totals = dict(known.get(start, ()))

        self._add(totals, start, at, key, spans)
        known[at] = totals
        return dict(totals)

    def _add(
        self,
        totals: dict[str, int],
        first: int,
        last: int,
        key: Callable[[Record], str],
        spans: dict[Any, dict[str, int]],
    ) -> dict[str, int]:
        """What these events add, by key, to `totals`.

        A method: a function inside another that calls itself would keep the log until Python looks
        for cycles.
        """
        for index in range(first, last):
            record, change, _ = self.events[index]
            if record is not None:
                name = key(record)
                totals[name] = totals.get(name, 0) + change
                continue
            begin, end, times = self.repeats[index]
            if (begin, end) not in spans:
                spans[begin, end] = self._add({}, begin, end, key, spans)
            for name, size in spans[begin, end].items():
                totals[name] = totals.get(name, 0) + times * size
        return totals
