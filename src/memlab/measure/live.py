"""Watch a run and know, not guess: what was alive at its peak, and which line of code made it."""

from typing import Any

import torch

from ..base.frozen import replace
from ..base.messages import Listed, Message, say
from ..base.table import as_html, as_text, cell, signed
from ..explain import findings
from ..explain.explanation import Explanation, explain, predicted
from ..explain.watched import STAYS, Watched
from ..explain.watched import STEP as STEP
from ..explain.watched import terms as _terms
from ..ledger import Ledger
from ..model import Model
from ..recipe import Recipe
from ..run import Run
from ..units import text
from . import cuda
from .line_tracker import ENOUGH_STEPS, Held
from .line_tracker import LineTracker as LineTracker
from .preexisting import Preexisting, Unused

WORTH_SAYING = 100  # what is less than a hundredth of the peak explains nothing


class Live:
    """What `memlab.explain()` gives without a figure: a `with` block that watches a run.

    model       a Model, to hold the run against; None: only watch
    run         what the run was believed to be, as memlab.Run
    tracker     every storage, its category and its line, after the block
    counters    the CUDA allocator's own, where there is a device; else None
    idle        tensors from before the block that it never used: alive, and not in the peak
    Changes     see Tracker; a run takes longer
    Raises      ValueError for a model whose step is not described, before anything runs
    """

    def __init__(
        self,
        model: Model | None = None,
        recipe: Recipe | str | None = None,
        run: Run | None = None,
        *,
        device: str | torch.device | None = None,
    ) -> None:
        self._known = None if model is None else (model, recipe, run or Run())
        self.predicted: Ledger | None = None
        if self._known is not None:
            self.predicted = predicted(*self._known)
        elif run is not None:
            raise ValueError("a run without a model; give explain(model, recipe, run)")
        self.tracker = LineTracker(device)
        self.counters: cuda.Counters | None = None
        self.idle = Unused(0, 0)
        self._card: cuda.CudaTracker | None = None

    def __enter__(self) -> "Live":
        self._before = Preexisting()
        if cuda.available():
            self._card = cuda.CudaTracker().__enter__()
        self.tracker.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self.tracker.__exit__(*error)
        self.idle = self._before.idle(self.tracker)
        if self._card is not None:
            self._card.__exit__(*error)
            self.counters = self._card.counters

    @property
    def peak(self) -> int:
        """Most bytes of tensors alive at once."""
        return self.tracker.peak

    def held(self) -> list[Held]:
        """What was alive at the peak, by category and line."""
        return self.tracker.held("peak")

    def ledger(self) -> Ledger:
        """The peak by term: measured, and derived where a model was given."""
        measured = _terms(self.tracker.contents("peak"))
        title = "the peak of the run"
        if self.predicted is None:
            return Ledger.of("measured", measured, title=title)
        derived = _terms({row.term: row.derived or 0 for row in self.predicted.rows})
        names = [n for n in (*STAYS, STEP) if measured.get(n) or derived.get(n)]
        one = Ledger.of("derived", {n: derived.get(n, 0) for n in names}, title=title)
        other = Ledger.of("measured", {n: measured.get(n, 0) for n in names}, title=title)
        return one.beside(other, title=title)

    def explanation(self) -> Explanation:
        """The causes that fit the gap, for those who have not looked at the lines yet.

        Raises      ValueError without a model
        """
        if self._known is None:
            raise ValueError("nothing was predicted; give explain(model, recipe, …)")
        seen, terms, grows = self.peak, self._watched(), self._grows()
        if self.predicted is not None and self._level(seen - self.predicted.total()):
            # Nothing in the block accounts for more: then what lay there before it, if anything.
            more = _terms(self.idle.terms) if self.idle.bytes * WORTH_SAYING >= seen else {}
            seen += sum(more.values())
            terms = {name: terms.get(name, 0) + more.get(name, 0) for name in {*terms, *more}}
            grows = None if more else grows  # no step made it
        watched = Watched(terms, grows)
        found = explain(*self._known, seen=seen, level="tensors", watched=watched)
        return replace(found, notes=(*found.notes, *self._seen()))

    def _watched(self) -> dict[str, int]:
        return _terms(self.tracker.contents("peak"))

    def _level(self, gap: int) -> bool:
        """Whether the peak is as predicted, but for a thousandth."""
        return 1000 * abs(gap) <= self.peak

    def _grows(self) -> int | None:
        """Bytes that each step leaves behind; None: too few steps tell nothing."""
        if len(self.tracker.steps) < ENOUGH_STEPS:
            return None
        return sum(row.bytes for row in self.tracker.growth())

    def _seen(self) -> list[str]:
        """What the tracker knows of the gap, term by term, in sentences."""
        rows = {row.term: row.difference for row in self.ledger().rows}
        more = [Message("{1} {2}", term, signed(size)) for term, size in rows.items() if size]
        same = [term for term, size in rows.items() if size == 0]
        if not more:
            return self._idle()
        kind = findings.WHERE_NOT if same else findings.WHERE
        return [Message(kind, Listed(", ", more), Listed(", ", same)), *self._idle()]

    def _idle(self) -> list[str]:
        if self.idle.bytes * WORTH_SAYING < max(self.peak, 1):
            return []
        return [Message(findings.IDLE, text(self.idle.bytes), f"{self.idle.storages:,}")]

    def _table(self, most: int = 8) -> list[list[str]]:
        return _rows("alive at the peak", self.held(), most)

    def _growth(self, most: int = 4) -> list[list[str]]:
        """What each step leaves behind; no rows where nothing does, or too few steps were seen."""
        if len(self.tracker.steps) < ENOUGH_STEPS or not (grown := self.tracker.growth()):
            return []
        return _rows("left behind by each step", grown, most)

    def __str__(self) -> str:
        parts = [as_text(self._table(), title=Message("peak {1}", text(self.peak)))]
        if grown := self._growth():
            parts.append(as_text(grown))
        return "\n\n".join([*parts, *map(say, self._idle())])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        parts = [as_html(self._table(), title=Message("peak {1}", text(self.peak)))]
        if grown := self._growth():
            parts.append(as_html(grown))
        return "".join([*parts, *(f"<p>{say(line)}</p>" for line in self._idle())])


def _rows(what: str, rows: list[Held], most: int) -> list[list[str]]:
    body = [[r.category, cell(r.bytes), cell(r.tensors), r.where, r.code] for r in rows[:most]]
    rest = rows[most:]
    if rest:
        sums = sum(r.bytes for r in rest), sum(r.tensors for r in rest)
        body.append(["the rest", *map(cell, sums), Message("{1} more", len(rest)), ""])
    return [[what, "bytes", "tensors", "line", "code"], *body]
