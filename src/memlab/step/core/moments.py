"""A step moment by moment: what `memlab.plot.timeline` draws, and how high its hills are.

A step goes up and down more than once. Its peak is the highest hill; whoever lowers that one finds
the next, so all of them are worth knowing.
"""

from __future__ import annotations

from ...base.frozen import dataclass
from ...ledger import Ledger
from .. import Step
from ..simulate import TERMS, term

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

HILLS = ("forward", "loss", "backward", "optimizer", "evaluation")
AFTER = ("zero_grad", "evaluation")  # the optimizer's step


@dataclass(frozen=True)
class Moment:
    """What is held right after one allocation or free.

    phase       the hill that it belongs to, or zero_grad
    Unit        bytes
    """

    index: int
    total: int
    phase: str


class Moments:
    """The steady step of a simulation, moment by moment, in the form that a tracker gives it.

    Example     timeline(Moments(simulate(model, "bf16", batch=1, tokens=4096, every_layer=True)))
    Raises      ValueError for a step that did not simulate every layer
    """

    def __init__(self, step: Step) -> None:
        if step.log.repeats:
            raise ValueError("layers are missing; simulate(..., every_layer=True) has all of them")
        held = step.log.contents(_marks(step)[0][0], term)
        self.timeline: list[Moment] = []
        self._contents: list[dict[str, int]] = []
        for _, phase, record, change, total in _events(step):
            assert record is not None  # every layer is there
            held[term(record)] = held.get(term(record), 0) + change
            part = "loss" if held.get("logits") and phase != "evaluation" else phase
            self.timeline.append(Moment(len(self.timeline), total, part))
            self._contents.append(dict(held))

    def contents(self, at: int) -> dict[str, int]:
        """Bytes by term right after a moment; they add to its total."""
        return self._contents[at]


def hills(step: Any, start: int = 0) -> dict[str, Ledger]:
    """What is held at the highest moment of each part of a step; the highest of all is its peak.

    forward     up to the output head
    loss        while a copy of the logits or their gradient is alive, forward and backward
    backward    after that
    optimizer   the optimizer's step
    evaluation  what a simulated step has between zero_grad and the next one, if anything
    step        a simulated Step (column derived), a Trace (traced), or a Tracker (measured) with
                phases of these names and its logits labelled, whose step begins at event `start`
    Unit        bytes
    Raises      ValueError for a tracker that saw no event from `start` on
    """
    if isinstance(step, Step):
        column, contents = "derived", lambda at: step.log.contents(at + 1, term)
    elif hasattr(step, "tracker"):
        column, contents, start = "traced", step.contents, step.start
    else:
        column, contents = "measured", step.contents
    found = {}
    for name, (at, total) in _tops(step, start).items():
        held = contents(at)
        figures = {part: held.pop(part) for part in TERMS if held.get(part)}
        figures |= {part: size for part, size in held.items() if size}
        assert sum(figures.values()) == total
        found[name] = Ledger.of(column, figures, title=name)
    return found


def _tops(step: Any, start: int) -> dict[str, tuple[int, int]]:
    """Of each hill the first event that reached its top, and the bytes held then."""
    tops: dict[str, tuple[int, int]] = {}
    logits, last = 0, None
    for at, phase, is_logits, change, total in _named(step, start):
        if phase == "zero_grad" and not isinstance(step, Step):
            break  # what follows is another step
        if is_logits:
            logits += change
        name = "loss" if logits and phase not in AFTER else phase
        if name in HILLS and total > tops.get(name, (0, -1))[1]:
            tops[name] = at, total
        if phase not in AFTER:
            last = at, total
    if last is None:
        raise ValueError(f"no event from {start} on; run the step in the tracker's block")
    tops.setdefault("optimizer", last)  # one that allocates nothing finds what backward left
    return {name: tops[name] for name in HILLS if name in tops}


def _named(step: Any, start: int) -> Iterator[tuple[int, str, bool, int, int]]:
    """Number, phase, whether the storage holds logits, change and total of each event."""
    if isinstance(step, Step):
        for at, phase, record, change, total in _events(step):
            yield at, phase, record is not None and term(record) == "logits", change, total
        return
    tracker = getattr(step, "tracker", step)
    for event in tracker.timeline[start:]:
        is_logits = tracker.records[event.ident].category == "logits"
        yield event.index, event.phase, is_logits, event.bytes, event.total


def _marks(step: Step) -> list[tuple[int, str]]:
    """Where each phase of the second step begins, one after the other."""
    marks = sorted((at, name.split(".")) for name, at in step.log.marks.items())
    return [(at, words[1]) for at, words in marks if words[0] == "second"]


def _events(step: Step) -> Iterator[tuple[int, str, Any, int, int]]:
    """Number, phase, record, change and total of each event of the second step."""
    marks = _marks(step)
    for (first, phase), (end, _) in zip(marks, marks[1:], strict=False):
        for at in range(first, end):
            yield at, phase, *step.log.events[at]
