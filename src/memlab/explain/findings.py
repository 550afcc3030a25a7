"""What an explanation says: causes alone, causes together, and how they print."""

from __future__ import annotations

from ..base.frozen import dataclass
from ..base.message import Listed, Message
from ..ledger import Ledger
from ..units import text

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

# What it says, with its values: a size, a name or names, how many or another size.
MISSING = "predicted {1}, seen {2}: {3} are missing"
SAME = "predicted {1}, seen {2}: nothing is missing, +0 B"
LESS = "predicted {1}, seen {2}: {3} less than predicted"
MISSING_OR_MORE = "predicted {1}, {2} or more were needed: {3} or more are missing"
NOT_MISSING = "predicted {1}, {2} or more were needed: nothing is missing"
SIZED = "{name}: {number}"  # a cause that makes less, and the number that comes nearest
INSIDE = (
    "The figure that was seen is rounded to {1}, at least twice the gap: rounding alone may "
    "account for it."
)
CAUSES = "what can account for it: first what closes the gap, then the most likely"
SUMS = "what comes near it together"
RULED_OUT = "what cannot"
ONCE = {grade: f"{{1}}   {{2}}, {grade}" for grade in ("often", "sometimes", "seldom")}
TIMES = {grade: f"{{1}}   {{2}} ({{3}} times), {grade}" for grade in ONCE}
EQUAL = (
    "These {1} causes fit equally: {2}. A figure known to {3} cannot tell them apart; a look can."
)
EQUAL_EXACT = (
    "These {1} causes fit equally: {2}. A figure known to the byte cannot tell them apart; a look "
    "can."
)
NOTHING_LEFT, LEFT, OVER = (
    "{1}   {2}, nothing left",
    "{1}   {2}, {3} left",
    "{1}   {2}, {3} too much",
)
NOTHING, TOO_MUCH = "{1}   {2}: nothing at this peak", "{1}   {2}: {3}: too much"
LOOK = " " * 13  # before what to look at
ALIKE_TO = 100  # causes as large as each other differ by less than a hundredth
LIKE, ALIKE = "=", "{1}   as many bytes as the one above: a figure cannot tell which of them it is"
WHERE = "The tracker sees where the gap is: {1}."
WHERE_NOT = "The tracker sees where the gap is: {1}; {2}: as predicted."
TOLD_MORE = (
    "The prediction was {1}. memlab derives {2} more from the same settings: that part of the "
    "difference is in the prediction, not in the run."
)
TOLD_LESS = TOLD_MORE.replace("{2} more", "{2} less")
POWERS = "nvidia-smi and torch count in powers of two: if {1} stood for {2}, {3} more were seen."
IDLE = (
    "Not in the peak, since the block never used them: {1} in {2} tensors that were made before "
    "the block and are still alive."
)
# All of them; those with less of their own come last, as a reader of printed text needs them.
SENTENCES = (
    *(MISSING, SAME, LESS, MISSING_OR_MORE, NOT_MISSING, CAUSES, SUMS, RULED_OUT, *TIMES.values()),
    *(*ONCE.values(), SIZED, ALIKE, EQUAL, EQUAL_EXACT, NOTHING_LEFT, TOO_MUCH, LEFT, OVER),
    *(NOTHING, INSIDE, WHERE_NOT, WHERE, TOLD_MORE, TOLD_LESS, POWERS, IDLE),
)


@dataclass(frozen=True)
class Finding:
    """One cause, alone.

    bytes       what it adds to the predicted peak, or takes from it where less was seen; None where
                only a look can tell
    pieces      how many times, for a cause that comes in pieces; 1 for the others
    """

    name: str
    bytes: int | None
    pieces: int
    likely: str
    look: str

    def same_bytes(self, other: Finding, rounding: int) -> bool:
        """Whether a figure known to so many bytes shows the same of both, which are as large.

        Of two that are far smaller than what the figure shows, each keeps its own number.
        """
        if self.bytes is None or other.bytes is None:
            return False
        most = max(self.bytes, other.bytes) // ALIKE_TO
        return abs(self.bytes - other.bytes) <= min(rounding, most)


def several(pieces: int, name: str) -> str:
    """A cause of a sum, so many times."""
    return Message("{pieces} × {name}", pieces=f"{pieces:,}", name=name, count=pieces)


def cause_of(name: str) -> str:
    """The cause that a name of a sum is of, however many times."""
    return name.values["name"] if isinstance(name, Message) else name


def pieces_of(name: str) -> int:
    """How many times, for a cause that a sum has several times; else 0."""
    return int(name.values.get("count", 0)) if isinstance(name, Message) else 0


@dataclass(frozen=True)
class Sum:
    """Causes that together come near the gap.

    bytes       what they add to the predicted peak together, or take from it: less than the sum of
                their parts where they fall on different moments
    left        bytes of the gap that they leave; negative where they overshoot
    """

    names: tuple[str, ...]
    bytes: int
    left: int


@dataclass(frozen=True, repr=False)
class Explanation:
    """What was predicted, what was seen, and what may lie between.

    causes      what can account for some of the gap: first what closes it, then the most likely
    sums        one to three causes together, by likelihood and closeness
    ruled_out   causes that cannot: they add nothing to this peak, or more than the gap
    equal       those of `causes` that close the gap, as far as the figure is known; of two or more
                the figure cannot tell which it is
    rounding    bytes to which the figure is known
    at_least    whether the run would have held more than was seen: it ended out of memory
    """

    predicted: Ledger
    seen: int
    causes: tuple[Finding, ...]
    sums: tuple[Sum, ...]
    ruled_out: tuple[Finding, ...]
    notes: tuple[str, ...]
    equal: tuple[str, ...] = ()
    rounding: int = 0
    at_least: bool = False

    @property
    def gap(self) -> int:
        """Bytes seen and not predicted."""
        return self.seen - self.predicted.total()

    @property
    def inside(self) -> list[str]:
        """A sentence where the rounding of what was seen hides the gap, else none."""
        near = 2 * abs(self.gap) <= self.rounding
        hidden = near and self.gap > 0 if self.at_least else near and self.gap
        return [Message(INSIDE, text(self.rounding))] if hidden else []

    def __str__(self) -> str:
        from ..base.messages import say, told  # when it is printed: a figure needs no words

        total = self.predicted.total()
        lines = [str(say(self.predicted.title))]
        lines += [
            told(_gap(self.gap, self.at_least), text(total), text(self.seen), text(abs(self.gap)))
        ]
        lines += [line for one in self.inside for line in ("", str(say(one)))]
        if len(self.equal) > 1:
            known, names = text(self.rounding), Listed(", ", self.equal)
            kind_ = EQUAL if self.rounding > 1 else EQUAL_EXACT
            lines += ["", told(kind_, len(self.equal), names, known)]
        if self.causes:
            lines += ["", told(CAUSES)]
        above, again = None, False
        for one in self.causes:
            size = "?" if one.bytes is None else text(one.bytes)
            if above is not None and one.same_bytes(above, self.rounding):
                size = LIKE
            else:
                above = one
            kind = TIMES if one.pieces > 1 else ONCE
            lines += [told(kind[one.likely], f"{size:>10}", one.name, f"{one.pieces:,}")]
            lines += [LOOK + say(one.look)]
            again = again or size == LIKE
        if again:
            lines += [told(ALIKE, f"{LIKE:>10}")]
        if self.sums:
            lines += ["", told(SUMS)]
        for sum_ in self.sums:
            size, names = text(sum_.bytes), Listed(" + ", sum_.names)
            lines += [told(_left(sum_.left), f"{size:>10}", names, text(abs(sum_.left)))]
        if self.ruled_out:
            lines += ["", told(RULED_OUT)]
        for one in self.ruled_out:
            why = TOO_MUCH if one.bytes else NOTHING
            lines += [told(why, " " * 10, one.name, text(one.bytes or 0))]
        return "\n".join([*lines, *(f"\n{say(note)}" for note in self.notes)])

    __repr__ = __str__

    def as_dict(self) -> dict[str, Any]:
        """For programs: names and whole bytes."""
        return {
            "title": self.predicted.title,
            "unit": "bytes",
            "predicted": {row.term: row.derived for row in self.predicted.rows},
            "predicted_bytes": self.predicted.total(),
            "seen_bytes": self.seen,
            "gap_bytes": self.gap,
            "causes": [_plain(one) for one in self.causes],
            "sums": [_plain(one) for one in self.sums],
            "ruled_out": [_plain(one) for one in self.ruled_out],
            "notes": [*self.inside, *self.notes],
            "equal": list(self.equal),
            "rounding_bytes": self.rounding,
            "at_least": self.at_least,
        }


def _gap(gap: int, at_least: bool) -> str:
    if at_least:
        return MISSING_OR_MORE if gap > 0 else NOT_MISSING
    if gap > 0:
        return MISSING
    return LESS if gap else SAME


def _left(left: int) -> str:
    if left == 0:
        return NOTHING_LEFT
    return LEFT if left > 0 else OVER


def _plain(found: Any) -> dict[str, Any]:
    return {name: getattr(found, name) for name in found.__fields__}
