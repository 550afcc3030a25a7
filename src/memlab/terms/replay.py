"""A trace of storages, replayed through the caching allocator: reserved bytes over time.

alloc, seen     a storage is born, or was there before the trace began
resize          it has another size from here on
free            it is gone
"""

from __future__ import annotations

from .allocator import CachingAllocator, OutOfMemory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping

    from .segments import Tell

KINDS = ("alloc", "seen", "resize", "free")


class Replay:
    """A trace as the allocator lives it: bytes after each event, the peaks, and the end.

    requested, allocated, reserved      lists, one number for each event that went through
    out_of_memory                       None, or the OutOfMemory that ended it (its .event tells)
    allocator                           in the state after the last event
    """

    def __init__(self, allocator: CachingAllocator) -> None:
        self.allocator = allocator
        self.out_of_memory: OutOfMemory | None = None
        self.requested: list[int] = []
        self.allocated: list[int] = []
        self.reserved: list[int] = []

    @property
    def fits(self) -> bool:
        return self.out_of_memory is None

    @property
    def peak_requested(self) -> int:
        return self.allocator.peak_requested

    @property
    def peak_allocated(self) -> int:
        return self.allocator.peak_allocated

    @property
    def peak_reserved(self) -> int:
        return self.allocator.peak_reserved

    def __repr__(self) -> str:
        ended = self.out_of_memory
        end = "" if ended is None else f", out of memory at event {ended.event}"
        return (
            f"Replay({len(self.reserved):,} events, peak requested {self.peak_requested:,} B, "
            f"allocated {self.peak_allocated:,} B, reserved {self.peak_reserved:,} B{end})"
        )


def replay(
    events: Iterable[tuple[str, Hashable, int]],
    *,
    streams: Mapping[Hashable, str] | None = None,
    capacity: int | None = None,
    expandable: bool = False,
    tell: Tell | None = None,
) -> Replay:
    """Run a list of events through the allocator, up to the first one that does not fit.

    events      (kind, ident, bytes): alloc (or seen) and resize say the size from then on; the
                bytes of a free are not read
    streams     by ident, of what is made on another stream than the program's own
    Source      `CachingAllocator`, whose other arguments these are
    Raises      ValueError for an unknown kind, or an event that the ones before make impossible
    """
    allocator = CachingAllocator(capacity, expandable=expandable, tell=tell)
    done = Replay(allocator)
    apart = streams or {}
    for index, (kind, ident, size) in enumerate(events):
        try:
            if kind == "free":
                allocator.free(ident)
            elif kind == "resize":
                allocator.resize(ident, size)
            elif kind in KINDS:
                allocator.malloc(ident, size, apart.get(ident, ""))
            else:
                raise ValueError(f"event {index} is of kind {kind!r}; known: {', '.join(KINDS)}")
        except OutOfMemory as error:
            error.event = index
            done.out_of_memory = error
            break
        done.requested.append(allocator.requested)
        done.allocated.append(allocator.allocated)
        done.reserved.append(allocator.reserved)
    return done
