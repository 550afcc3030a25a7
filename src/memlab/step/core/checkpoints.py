"""Checkpointed regions of a simulated step: what they keep, and how it is computed again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from .graph import Tensor, call
from .storage_log import Log, Storage

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any
    from weakref import ref


class Recomputed(Exception):
    """All that a checkpointed region has to give back has been computed again."""


class Frame:
    """A checkpointed region: what to call again, and a place for each tensor it is to give back.

    traversal   of the graph, the last in which it was computed again
    """

    __slots__ = ("arguments", "function", "part", "places", "traversal")

    def __init__(self, function: Callable[..., Any], arguments: tuple[Any, ...], part: str) -> None:
        self.function, self.arguments, self.part = function, arguments, part
        self.places: list[ref[Place]] = []
        self.traversal = 0


class Place:
    """Stands in the graph where a tensor is kept outside of checkpoints.

    storages    by traversal of the graph what was computed again for it, until it is asked for
    """

    __slots__ = ("__weakref__", "frame", "storages")

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.storages: dict[int, Storage] = {}


class Checkpoints:
    """The region whose forward pass runs, or the one that is computed again.

    Source      torch/utils/checkpoint.py, use_reentrant=False: computed again as a whole when the
                first of its tensors is asked for, up to the last one that is. Where the graph is
                run in parts, each part is another graph task (`gid`), which computes it again for
                itself; what a part was not asked for stays until the operator goes that kept it
    """

    def __init__(self) -> None:
        self._frame: Frame | None = None
        self._again: Iterator[ref[Place]] | None = None  # the places that a second pass fills
        self._left = 0  # of them

    @property
    def again(self) -> bool:
        """Whether a region is being computed again."""
        return self._again is not None

    @property
    def first_pass(self) -> bool:
        """Whether a region runs for the first time."""
        return self._frame is not None and self._again is None

    @property
    def complete(self) -> bool:
        """Whether it has given back all that it was to give."""
        return self._again is not None and self._frame is not None and not self._left

    def enter(self, frame: Frame) -> Any:
        """The first pass through a region: its result."""
        self._frame = frame
        result = call(frame.function, *frame.arguments)
        self._frame = None
        return result

    def place(self) -> Place | None:
        """A new place for a tensor of the first pass; None outside of it."""
        if self._frame is None or self._again is not None:
            return None
        from weakref import ref  # only a step with checkpoints needs it

        place = Place(self._frame)
        self._frame.places.append(ref(place))
        return place

    def give(self, storage: Storage) -> Storage:
        """Put what the second pass made where the graph looks for it, if it is still there."""
        assert self._again is not None
        if (place := next(self._again)()) is not None:
            place.storages[place.frame.traversal] = storage
        self._left -= 1
        return storage

    def run_again(self, frame: Frame, traversal: int) -> None:
        """The second pass through a region; where the graph is run in parts, one for each."""
        places, frame.traversal = frame.places, traversal
        self._frame, self._again, self._left = frame, iter(places), len(places)
        try:
            call(frame.function, *frame.arguments)
        except Recomputed:
            pass
        self._frame, self._again = None, None


def stop(log: Log, outputs: Sequence[Tensor], saved: Sequence[Any]) -> None:
    """The last tensor is there. An operator keeps its inputs before it computes its result."""
    results = [pair[1].storage for pair in saved if pair is not None]
    for out in outputs:
        record = out.record
        if out.storage not in results and log.events[-1][0] is record:
            log.total -= record.bytes
            log.events.pop()
            record.bytes = 0
    raise Recomputed
