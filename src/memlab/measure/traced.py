"""What a traced step tells: a ledger, a timeline, the peak and its moment, and where it fits."""

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from ..base import titles
from ..base.table import as_html, as_text, cell
from ..ledger import Ledger
from ..units import text
from ..verdict import Verdict, room_on
from .log import Event
from .recorded import CATEGORIES
from .tracker import Tracker

MOMENTS = ("after_forward", "after_backward", "between_steps")
TERMS = (*CATEGORIES[:-1], "logits", "other")


class Trace:
    """A training step that was traced; the steady state is its last step.

    ledger              what is held at the peak: column "traced", one row a category; logits are
                        all copies of them and their gradients, kept for backward or not
    rows                weights, buffers, gradients, optimizer; and what autograd keeps after the
                        forward pass: activations before the output head, logits from it on
    peak, peak_event    bytes, and the event that reached them first (its .phase, its .op)
    first_step_peak     bytes; in the first step the optimizer makes its states
    held                bytes after_forward, after_backward, between_steps
    tracker             every event of every step; `timeline` has those of the last
    parameters          of the model, where a config was traced; tied ones count once
    notes               what a reader of the figures must know, a line each
    threads             that multiply, each with a workspace of cuBLAS
    Unit                bytes as tensors ask for them; `reserved()` is what an allocator makes of it
    """

    threads = 2

    def __init__(
        self,
        title: str,
        tracker: Tracker,
        rows: dict[str, int],
        start: int,
        marks: dict[str, int],
        first_peak: int,
    ) -> None:
        self.title = title
        self.parameters = 0
        self.notes: tuple[str, ...] = ()
        self.tracker = tracker
        self.rows = rows
        self.start = start
        self.first_step_peak = first_peak
        self._marks = marks
        self.peak = tracker.peak
        self.peak_event = tracker.peak_event

    @property
    def timeline(self) -> Sequence[Event]:
        """The events of the last step, in order."""
        return self.tracker.timeline[self.start :]

    @property
    def held(self) -> dict[str, int]:
        """Bytes alive at the three quiet moments of the last step."""
        return {name: sum(self.contents(name).values()) for name in self._marks}

    def contents(self, at: int | str = "peak") -> dict[str, int]:
        """Bytes by category at the "peak", at a moment of `held`, or right after an event.

        Raises      ValueError for another moment
        """
        if isinstance(at, str) and at != "peak":
            if at not in self._marks:
                known = ", ".join(("peak", *self._marks))
                raise ValueError(f"unknown moment {at!r}; known: {known}, or an event's index")
            at = self._marks[at]
        found = self.tracker.contents(at)
        return {term: found.pop(term, 0) for term in TERMS} | found

    @property
    def ledger(self) -> Ledger:
        """What is held at the peak; the column is "traced"."""
        figures = {term: size for term, size in self.contents("peak").items() if size}
        title = titles.in_moment(self.title, self.moment, self.op)
        return Ledger.of("traced", figures, title=title)

    @property
    def moment(self) -> str:
        """The phase of the peak: forward, loss (while logits are alive), backward or optimizer."""
        phase = "" if self.peak_event is None else self.peak_event.phase
        logits = phase in ("forward", "backward") and self.contents("peak")["logits"]
        return "loss" if logits else phase

    @property
    def op(self) -> str:
        """The operator whose result reached the peak."""
        op = "" if self.peak_event is None else self.peak_event.op
        return op.removeprefix("aten.").removesuffix(".default")

    def allocated(self) -> int:
        """The peak in blocks of the caching allocator: each storage rounded up to 512 bytes."""
        return self._replayed(None, False).peak_allocated

    def reserved(self, *, expandable: bool = False) -> int:
        """Bytes that PyTorch's caching allocator takes from the driver for all this, at most.

        Source      `memlab.terms.allocator`, fed with every event
        """
        return self._replayed(None, expandable).peak_reserved

    def _replayed(self, capacity: int | None, expandable: bool) -> Any:
        from .snapshot import replay_tracker

        return replay_tracker(self.tracker, capacity, expandable=expandable)

    def fits(self, card: Any, *, spare: int | None = None, expandable: bool = False) -> bool:
        """Whether the step surely runs on `card` without an out-of-memory error.

        card        the name of one, such as "RTX 4090", a number of bytes, or "24 GiB"
        spare       bytes left free on it, as in `fit`; None: as `verdict`
        Raises      ValueError for a name that is not known
        """
        return self.verdict(card, spare=spare, expandable=expandable).fits

    def verdict(self, card: Any, *, spare: int | None = None, expandable: bool = False) -> Verdict:
        """Whether the step fits `card`, is tight there, or does not fit: memlab.verdict.

        spare       a number of bytes: just these are left free, and the trace is replayed through
                    the caching allocator with the others, which decides
        Source      the trace in the caching allocator: `reserved`
        Leaves out  other programs on the card
        Raises      ValueError for a name that is not known
        """
        room = room_on(card, spare, self.threads)
        done = self._replayed(None, expandable)
        if done.peak_reserved > room.of_allocator:  # unused blocks are given back before it fails
            limited = self._replayed(room.of_allocator, expandable)
            done = limited if limited.fits else done
        return room.verdict(self.peak, done.peak_reserved)

    def save_snapshot(self, path: str | Path) -> Path:
        """Write all steps, in the caching allocator, for https://docs.pytorch.org/memory_viz."""
        from .snapshot import dump_snapshot

        return dump_snapshot(self.tracker, path)

    def plot(self, title: str = "") -> Any:
        """The timeline of the last step as a picture, stacked by category."""
        from ..plot import timeline

        return timeline(self.tracker, start=self.start, title=title or self.title)

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain numbers and words, ready for JSON."""
        contents = {term: size for term, size in self.contents("peak").items() if size}
        return {
            "title": self.title,
            "rows": dict(self.rows),
            "held": self.held,
            "peak": {
                "bytes": self.peak,
                "moment": self.moment,
                "op": self.op,
                "contents": contents,
                "first_step_bytes": self.first_step_peak,
            },
        }

    def _moments(self) -> list[list[str]]:
        sizes = {"peak of the first step": self.first_step_peak, "peak": self.peak}
        sizes |= {name.replace("_", " "): size for name, size in self.held.items()}
        return [["moment", "bytes", "size"]] + [[n, cell(b), text(b)] for n, b in sizes.items()]

    def __str__(self) -> str:
        return "\n\n".join([str(self.ledger), as_text(self._moments()), *self.notes])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        said = "".join(f"<p>{escape(line)}</p>" for line in self.notes)
        return self.ledger._repr_html_() + as_html(self._moments()) + said
