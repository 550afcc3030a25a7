"""What a rehearsal found: the peak, what holds it, and whether it fits a card."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from ..measure.fake_cuda.assumed import Assumed
from ..measure.line_tracker import Line
from ..measure.oom_message import oom_message
from ..measure.snapshot import dump_snapshot, replay_tracker
from ..terms.replay import Replay
from ..verdict import DOES_NOT_FIT, Room, Verdict, room_on
from .asked import Asked
from .dataloaders import LoaderPatches
from .out_of_memory import Failure
from .remedies import Remedied, remedied
from .report import as_dict, as_lines
from .watched import Watched

if TYPE_CHECKING:
    from ..plot.canvas import Picture

# Libraries whose code decides what memory a program takes; only those that it has imported count.
LIBRARIES = (
    *("torch", "transformers", "trl", "peft", "accelerate", "bitsandbytes", "triton", "datasets"),
    *("lightning", "pytorch_lightning", "diffusers", "torchao", "torchtune", "litgpt", "timm"),
    "deepspeed",
)


class Holder(NamedTuple):
    """A line, and what tensors of one kind that it made hold at the peak."""

    bytes: int
    tensors: int
    term: str
    reader: Line
    library: Line


class Rehearsal:
    """A program as far as it went, in bytes of its tensors.

    asked       what was asked: the card that torch found, the rank, ...
    tracker     every storage and event; `where` has the lines of each
    loads       what loaders gave
    again       rehearses what is asked, for `remedies`
    others      rehearsals of other ranks, none of which holds more
    remedied    what `remedies` found, once somebody asked
    missing     packages that decide a path and are not installed: who looked for them
    status      the program's own exit status; `failure` its traceback, if it failed
    Unit        bytes as tensors ask for them
    Leaves out  workspaces inside kernels, what other processes hold
    """

    def __init__(
        self,
        asked: Asked,
        tracker: Watched,
        assumed: Assumed,
        loads: LoaderPatches,
        again: Callable[[Asked], Rehearsal],
        *,
        missing: dict[str, list[str]],
        status: int,
        failure: str | None,
    ) -> None:
        self.asked, self.tracker, self.loads, self.missing = asked, tracker, loads, missing
        self.again = again
        self.card, self.named, self.backend = asked.card, asked.named, asked.backend
        self.ranks = asked.program.ranks or 1
        self.others: list[Rehearsal] = []
        self.remedied: list[Remedied] | None = None
        self.status, self.failure = status, failure
        self.noted = assumed
        self.assumed, self.skipped = assumed.assumed, assumed.skipped
        self.peak = tracker.peak
        self.steps = tracker.peaks()
        self.host = tracker.host_peak
        self.versions = _versions()

    @property
    def place(self) -> int:
        """The number of its rank, or of its card where one process has several."""
        return self.asked.rank or self.asked.number

    @property
    def first(self) -> int:
        """The peak of the first step, and of all before it; of all where there is no step."""
        return self.steps[0] if self.steps else self.peak

    @property
    def later(self) -> int | None:
        """That of the steps after it; None where there are none."""
        return max(self.steps[1:], default=None)

    @property
    def held(self) -> dict[str, int]:
        """What the last step holds while nothing is computed; empty where none went backward.

        after_forward       what backward needs, with the last of several micro-batches
        after_backward      the gradients, before they are clipped
        between_steps       at least, from the optimizer's last step to the next backward pass
        """
        marks = [-1, *self.tracker.steps][-2:]
        events = self.tracker.timeline[marks[0] + 1 : marks[-1] + 1]
        back = [number for number, event in enumerate(events) if event.phase == "backward"]
        if not back or not back[0]:
            return {}
        runs = [number for number in back if events[number - 1].phase != "backward"]
        found = {"after_forward": events[runs[-1] - 1].total}
        found["after_backward"] = events[back[-1]].total
        if len(self.steps) > 1:
            found["between_steps"] = min(event.total for event in events[: back[0]])
        return found

    @property
    def step(self) -> int:
        """The step of the peak, from 1."""
        event = self.tracker.peak_event
        return 0 if event is None else self._step_of(event.index)

    @property
    def phase(self) -> str:
        """start (before the first call), forward, backward or optimizer."""
        event = self.tracker.peak_event
        return "" if event is None else event.phase

    def contents(self) -> dict[str, int]:
        """What is held at the peak, by term."""
        return {term: size for term, size in self.tracker.contents("peak").items() if size}

    def holders(self) -> list[Holder]:
        """The lines that hold most at the peak, most first."""
        found: dict[Any, list[int]] = {}
        for record, size in self.tracker.alive("peak"):
            key = (record.category, *self.tracker.where[record.ident])
            pair = found.setdefault(key, [0, 0])
            pair[0] += size
            pair[1] += 1
        rows = [Holder(size, count, *key) for key, (size, count) in found.items()]
        return sorted(rows, key=lambda row: (-row.bytes, row.term, row.reader.where))

    @cached_property
    def replay(self) -> Replay:
        """All events in PyTorch's allocator, with as much memory as it likes."""
        return replay_tracker(self.tracker)

    @cached_property
    def _on_card(self) -> Replay:
        return replay_tracker(self.tracker, self.room.of_allocator)

    @property
    def room(self) -> Room:
        """What the card has for one rank."""
        return room_on(self.card, None, self.threads, self.ranks)

    @property
    def threads(self) -> int:
        """That multiply matrices: two where there was a backward pass."""
        return 2 if self.tracker.turned >= 0 else 1

    @cached_property
    def verdict(self) -> Verdict | None:
        """Whether it fits the card, is tight or does not fit; None where none was named.

        None for a program that failed, too: what came after is not known
        """
        if not self.named or self.backend != "cuda" or self.status:
            return None
        room = self.room
        done = self.replay
        if done.peak_reserved > room.of_allocator and self._on_card.fits:
            done = self._on_card  # unused blocks are given back before it fails
        return room.verdict(self.peak, done.peak_reserved)

    def remedies(self) -> list[Remedied]:
        """What else would hold less, each rehearsed: memlab.rehearse.remedies."""
        if self.remedied is None:
            self.remedied = remedied(self)
        return self.remedied

    @property
    def out_of_memory(self) -> Failure | None:
        """How it would end on the card; None where it does not, or nobody named one."""
        if self.verdict is None or self.verdict.word != DOES_NOT_FIT:
            return None
        error = self._on_card.out_of_memory
        if error is None or error.event is None:
            return None
        event = self.tracker.timeline[error.event]
        where = self.tracker.where[event.ident]
        outside, number = self.card.limit - error.capacity, self.asked.local or self.asked.number
        said = oom_message(error, self.card, outside, number)
        return Failure(said, self._step_of(event.index), event.phase, *where)

    def _step_of(self, index: int) -> int:
        return 1 + sum(mark < index for mark in self.tracker.steps)

    def plot(self) -> Picture:
        """The last step in time, and where the card ends if one was named.

        Raises      ValueError where nothing was allocated
        """
        from ..plot.steps import timeline

        marks = self.tracker.steps
        limit = self.card.name if self.named and self.backend == "cuda" else None
        return timeline(self.tracker, start=marks[-2] + 1 if len(marks) > 1 else 0, limit=limit)

    def save_snapshot(self, path: str | Path) -> Path:
        """Write it for PyTorch's memory viewer, each tensor with its line."""
        return dump_snapshot(self.tracker, path)

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain numbers and words, ready for JSON."""
        return as_dict(self)

    def __str__(self) -> str:
        return "\n".join(as_lines(self))

    __repr__ = __str__


def _versions() -> dict[str, str]:
    """Of the libraries that took part."""
    found = {"python": ".".join(map(str, sys.version_info[:3])), "torch": torch.__version__}
    for name in LIBRARIES[1:]:
        if name in sys.modules:
            try:
                found[name] = metadata.version(name)
            except metadata.PackageNotFoundError:
                continue
    return found
