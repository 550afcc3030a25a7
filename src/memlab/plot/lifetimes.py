"""Where each block lies, from when to when: a trace as rectangles of address and time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ..terms.allocator import LARGE_SEGMENT, SMALL_SEGMENT, SMALL_SIZE, rounded
from ..terms.expandable import UNLIMITED_SPACE
from ..terms.replay import Replay, replay

Events = Iterable[tuple[str, Any, int]]


@dataclass(frozen=True)
class Stretch:
    """A stretch of memory: bytes [low, high) of the stack of segments, moments [start, end)."""

    ident: Any
    low: int
    high: int
    start: int
    end: int


@dataclass(frozen=True)
class Lifetimes:
    """What a picture of the address space shows.

    blocks      one for each block, with whose it was
    reserved    one for each stretch that the allocator had from the driver; ident is None
    lanes       (low, high) of each segment, in the order in which they were asked for
    moments     events that were followed, the one that ran out of memory included
    """

    blocks: list[Stretch]
    reserved: list[Stretch]
    lanes: list[tuple[int, int]]
    moments: int
    replay: Replay


class _StackedSegments:
    """Where segments stand: real addresses leave wide gaps, here they are stacked from zero."""

    def __init__(self, capacity: int | None) -> None:
        self._capacity = capacity
        self.found: list[list[Any]] = []  # [first address, space of addresses, bytes, small, low]

    def plain(self, address: int, size: int, live: list[Stretch]) -> None:
        """A new segment, in the lowest place that is free now."""
        lows = [0, *(each.high for each in live)]
        taken = [(each.low, each.high) for each in live]
        fits = (low for low in lows if all(low >= b or low + size <= a for a, b in taken))
        self.found.append([address, size, size, None, min(fits)])

    def pages(self, address: int, size: int, small: bool) -> None:
        """Pages of an expandable segment, the pool's own or a new one."""
        for lane in self.found:
            if lane[3] is small and lane[0] <= address < lane[0] + lane[1]:
                lane[2] = max(lane[2], address + size - lane[0])
                return
        space, page = UNLIMITED_SPACE, SMALL_SEGMENT if small else LARGE_SEGMENT
        if self._capacity is not None:
            space = -(-(self._capacity + self._capacity // 8) // page) * page
        self.found.append([address, space, size, small, None])

    def stack(self) -> None:
        """Give expandable segments, whose sizes are known only now, their places."""
        low = 0
        for lane in self.found:
            if lane[4] is None:
                lane[4] = low
                low += lane[2]

    def low(self, address: int) -> int:
        """Where in the stack an address lies."""
        lane = next(each for each in self.found if each[0] <= address < each[0] + each[1])
        return lane[4] + address - lane[0]


def lifetimes(events: Events, capacity: int | None = None, expandable: bool = False) -> Lifetimes:
    """Replay a trace and note where everything was.

    Source      `memlab.terms.replay`, whose arguments these are
    Leaves out  the real distance between two segments: they are stacked without gaps, a new one in
                the lowest place that is free
    """
    events = list(events)
    told: list[tuple[int, str, int, int]] = []
    done = _told(events, capacity, expandable, told)
    moments = len(events) if done.fits else len(done.reserved) + 1
    lanes = _StackedSegments(capacity)
    if expandable:
        for moment, action, address, size in told:
            if action == "segment_map":
                small = rounded(events[moment][2]) <= SMALL_SIZE
                lanes.pages(address, size, small)
        lanes.stack()
    allocated = [0, *done.allocated]
    using: dict[int, tuple[Any, int, int]] = {}  # address -> whose, block size, since
    sizes: dict[Any, int] = {}
    blocks: list[Stretch] = []
    reserved: list[Stretch] = []
    live: list[Stretch] = []
    for moment, action, address, size in told:
        if action == "alloc":
            ident = events[moment][1]
            # What allocated grew by; a resize lets the old block go within the same event.
            size = allocated[moment + 1] - allocated[moment] + sizes.get(ident, 0)
            using[address], sizes[ident] = (ident, size, moment), size
        elif action == "free":
            ident, size, since = using.pop(address)
            if events[moment][0] == "free":
                del sizes[ident]
            low = lanes.low(address)
            blocks.append(Stretch(ident, low, low + size, since, moment))
        elif action in ("segment_alloc", "segment_map"):
            if action == "segment_alloc":
                lanes.plain(address, size, live)
            low = lanes.low(address)
            live.append(Stretch(None, low, low + size, moment, moment))
        elif action in ("segment_free", "segment_unmap"):
            low = lanes.low(address)
            gone = list(_cut(live, low, low + size))
            reserved += [Stretch(None, a, b, old.start, moment) for old, a, b in gone if b > a]
            live = list(_rest(live, low, low + size))
    for address, (ident, size, since) in using.items():
        low = lanes.low(address)
        blocks.append(Stretch(ident, low, low + size, since, moments))
    reserved += [Stretch(None, each.low, each.high, each.start, moments) for each in live]
    stacked = [(lane[4], lane[4] + lane[2]) for lane in lanes.found]
    return Lifetimes(blocks, reserved, stacked, moments, done)


def _told(events, capacity, expandable, told) -> Replay:
    """Replay, noting in `told` what the allocator did and at which event."""
    moment = -1

    def counted() -> Iterator[tuple[str, Any, int]]:
        nonlocal moment
        for event in events:
            moment += 1
            yield event

    return replay(
        counted(),
        capacity=capacity,
        expandable=expandable,
        tell=lambda *what: told.append((moment, *what)),
    )


def _cut(live: list[Stretch], low: int, high: int) -> Iterator[tuple[Stretch, int, int]]:
    """The parts of what is live that lie in [low, high)."""
    for each in live:
        if each.low < high and low < each.high:
            yield each, max(each.low, low), min(each.high, high)


def _rest(live: list[Stretch], low: int, high: int) -> Iterator[Stretch]:
    """The parts that do not."""
    for each in live:
        for a, b in ((each.low, min(each.high, low)), (max(each.low, high), each.high)):
            if a < b:
                yield Stretch(None, a, b, each.start, each.end)
