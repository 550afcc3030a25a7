"""PyTorch's memory snapshots: what was allocated, reserved and in the way, and by which line.

`torch.cuda.memory._dump_snapshot("run.pickle")` writes one on a GPU, memlab.measure.dump_snapshot
one without. They are pickles, from anybody, so memlab.files.safe_pickle reads them; and what it
gives is looked at here level by level, counting, before anything is believed.
Long, because one format is read here level by level, and each level is checked.
"""

from __future__ import annotations

from ..base.frozen import dataclass
from ..base.table import as_html, as_text
from ..base.untrusted import read_bytes
from ..units import text
from .frames import NOWHERE as NOWHERE
from .frames import line_of
from .safe_pickle import MOST_BYTES, load

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

MOST_ENTRIES = (
    5_000_000  # allocations, frees and blocks of one file, each counted as often as named
)
BEFORE = "before the record begins"


@dataclass(frozen=True)
class Place:
    """Bytes that one line of the program holds, in so many blocks."""

    bytes: int
    blocks: int
    where: str


@dataclass(frozen=True, repr=False)
class Snapshot:
    """What a snapshot says of one device.

    allocated   bytes of blocks in use at the end, rounding included; requested: without it
    reserved    bytes of all segments at the end
    stuck       free bytes in segments that are partly in use: fragmentation
    free        free bytes in segments that nobody uses: a cache, which empty_cache gives back
    peak        most bytes allocated at once, as far as the record goes back
    held, at_peak   which lines hold the bytes, at the end and at the peak, most bytes first
    """

    device: int
    allocated: int
    requested: int
    reserved: int
    stuck: int
    free: int
    peak: int
    held: tuple[Place, ...]
    at_peak: tuple[Place, ...]

    def _table(self) -> list[list[str]]:
        rows = [["at the peak", "bytes", "blocks", "line"]]
        named = self.at_peak[:8]
        return rows + [[text(p.bytes), f"{p.bytes:,}", f"{p.blocks:,}", p.where] for p in named]

    def _title(self) -> str:
        return (
            f"device {self.device}: peak {text(self.peak)}, at the end {text(self.allocated)} "
            f"allocated, {text(self.reserved)} reserved, {text(self.stuck)} stuck between blocks"
        )

    def __str__(self) -> str:
        return as_text(self._table(), title=self._title())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return as_html(self._table(), title=self._title())


def read_snapshot(path: str, device: int | None = None) -> Snapshot:
    """Read a snapshot's file, executing nothing of it.

    device      its number; None: the one with most reserved bytes
    Source      the format: torch.cuda.memory._snapshot, torch.cuda._memory_viz
    Leaves out  streams and pools; what was alive before the record has no line
    Raises      ValueError for a file that is no snapshot, and for what `safe_pickle.load` refuses;
                OSError if it cannot be read
    """
    return summary(load(read_bytes(path, MOST_BYTES), str(path)), str(path), device)


def summary(found: Any, name: str = "this snapshot", device: int | None = None) -> Snapshot:
    """What a snapshot says, once it is made of plain values.

    Raises      ValueError where it is not built as PyTorch builds one
    """
    try:
        return _summary(_Count(), found, device)
    except _Wrong as wrong:
        raise ValueError(f"{name} is no memory snapshot: {wrong}") from None


class _Wrong(Exception):
    """What is not as in a snapshot."""


class _Count:
    """How many entries have been looked at, each as often as the snapshot names it."""

    def __init__(self) -> None:
        self.seen = 0
        self._lines: dict[int, str] = {}

    def dicts(self, value: Any, what: str) -> Iterator[dict[str, Any]]:
        for each in _kind(list, value, what):
            self.seen += 1
            if self.seen > MOST_ENTRIES:
                raise _Wrong(f"more than {MOST_ENTRIES:,} entries")
            yield _kind(dict, each, f"an entry of {what}")

    def line(self, frames: Any) -> str:
        """The line of the program; frames are shared by many entries, so each is read once."""
        if id(frames) not in self._lines:  # the snapshot keeps every list of frames alive
            self._lines[id(frames)] = _line(list(self.dicts(frames, "frames")))
        return self._lines[id(frames)]


def _summary(count: _Count, found: Any, device: int | None) -> Snapshot:
    top = _kind(dict, found, "a snapshot")
    for key in ("segments", "device_traces"):
        if key not in top:
            raise _Wrong(f"it has no {key!r}")
    by_device: dict[int, list[dict[str, Any]]] = {}
    for segment in count.dicts(top["segments"], "segments"):
        by_device.setdefault(_size(segment, "device", 0), []).append(segment)
    traces = _kind(list, top["device_traces"], "device_traces")
    if device is None:
        device = _fullest(by_device, traces)
    elif device not in by_device and not 0 <= device < len(traces):
        raise _Wrong(f"no device {device}; it has {len(traces)}")
    segments = by_device.get(device, [])
    sums = dict.fromkeys(("allocated", "requested", "stuck", "free"), 0)
    held: dict[str, list[int]] = {}
    for segment in segments:
        _blocks(count, segment, sums, held)
    trace = traces[device] if device < len(traces) else []
    peak, at_peak = _peak(count, trace, sums["allocated"])
    return Snapshot(
        device,
        sums["allocated"],
        sums["requested"],
        sum(_size(segment, "total_size") for segment in segments),
        sums["stuck"],
        sums["free"],
        peak,
        _places(held),
        _places(at_peak),
    )


def _fullest(by_device: dict[int, list[dict[str, Any]]], traces: list[Any]) -> int:
    if by_device:
        sizes = {n: sum(_size(s, "total_size") for s in by_device[n]) for n in sorted(by_device)}
        return max(sizes, key=lambda n: sizes[n])
    return next((i for i, trace in enumerate(traces) if trace), 0)


def _blocks(
    count: _Count, segment: dict[str, Any], sums: dict[str, int], held: dict[str, list[int]]
) -> None:
    free = used = 0
    for block in count.dicts(segment.get("blocks"), "blocks"):
        size = _size(block, "size")
        if block.get("state") == "inactive":
            free += size
            continue
        used += size
        sums["requested"] += _size(block, "requested_size", size)
        _add(held, count.line(block.get("frames", [])), size)
    sums["allocated"] += used
    sums["stuck" if used else "free"] += free


def _peak(count: _Count, trace: Any, end: int) -> tuple[int, dict[str, list[int]]]:
    """The highest total, and who held it. What was there before the record is what is left over."""
    alive: dict[int, tuple[int, str]] = {}
    total = low = 0
    events: list[tuple[int, int, str]] = []
    for entry in count.dicts(trace, "a trace"):
        action, size = entry.get("action"), _size(entry, "size", 0)
        if action == "alloc":
            total += size
            events.append((_size(entry, "addr"), size, count.line(entry.get("frames", []))))
        elif action == "free_completed":
            total -= size
            events.append((_size(entry, "addr"), -size, ""))
        low = min(low, total)
    before = max(end - total, -low, 0)  # the trace may be a ring whose beginning is lost
    most, now, top = before, before, 0
    for i, (_, change, _) in enumerate(events):
        now += change
        if now > most:
            most, top = now, i + 1
    for address, change, line in events[:top]:
        if change >= 0 and line:
            alive[address] = change, line
        else:
            alive.pop(address, None)
    held: dict[str, list[int]] = {}
    for size, line in alive.values():
        _add(held, line, size)
    unknown = most - sum(size for size, _ in held.values())
    if unknown > 0:
        held[BEFORE] = [unknown, 0]
    return most, held


def _add(held: dict[str, list[int]], line: str, size: int) -> None:
    pair = held.setdefault(line, [0, 0])
    pair[0] += size
    pair[1] += 1


def _places(held: dict[str, list[int]]) -> tuple[Place, ...]:
    found = [Place(size, blocks, line) for line, (size, blocks) in held.items()]
    return tuple(sorted(found, key=lambda place: (-place.bytes, place.where)))


def _line(frames: list[dict[str, Any]]) -> str:
    """The line of the program that asked, as memlab.files.frames finds it."""
    found = []
    for frame in frames:
        file, line, name = (frame.get(key, "") for key in ("filename", "line", "name"))
        if not isinstance(file, str) or not isinstance(name, str):
            raise _Wrong("a frame without a file, a line and a name")
        if not isinstance(line, int | str):
            raise _Wrong("a frame without a file, a line and a name")
        found.append((file, line, name))
    return line_of(found)


def _kind(kind: type, value: Any, what: str) -> Any:
    if not isinstance(value, kind):
        raise _Wrong(f"{what} is a {type(value).__name__}, not a {kind.__name__}")
    return value


def _size(entry: dict[str, Any], key: str, default: int | None = None) -> int:
    value = entry.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int):
        raise _Wrong(f"{key} is a {type(value).__name__}, not a whole number")
    if value < 0:
        raise _Wrong(f"{key}={value} is negative")
    return value
