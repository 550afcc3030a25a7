"""What an explanation says: causes alone, causes together, and how they print."""

from __future__ import annotations

from ..base.frozen import dataclass
from ..ledger import Ledger
from ..units import text

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any


@dataclass(frozen=True)
class Finding:
    """One cause, alone.

    bytes       what it adds to the predicted peak; None where only a look can tell
    pieces      how many times, for a cause that comes in pieces; 1 for the others
    """

    name: str
    bytes: int | None
    pieces: int
    likely: str
    look: str


@dataclass(frozen=True)
class Sum:
    """Causes that together come near the gap.

    bytes       what they add to the predicted peak together: less than the sum of their parts
                where they fall on different moments
    left        bytes of the gap that they leave; negative where they overshoot
    """

    names: tuple[str, ...]
    bytes: int
    left: int


@dataclass(frozen=True, repr=False)
class Explanation:
    """What was predicted, what was seen, and what may lie between.

    causes      what can account for some of the gap, likeliest first
    sums        one to three causes together, by likelihood and closeness
    ruled_out   causes that cannot: they add nothing to this peak, or more than the gap
    equal       those of `causes` that close the gap, as far as the figure is known; of two or more
                the figure cannot tell which it is
    rounding    bytes to which the figure is known
    """

    predicted: Ledger
    seen: int
    causes: tuple[Finding, ...]
    sums: tuple[Sum, ...]
    ruled_out: tuple[Finding, ...]
    notes: tuple[str, ...]
    equal: tuple[str, ...] = ()
    rounding: int = 0

    @property
    def gap(self) -> int:
        """Bytes seen and not predicted."""
        return self.seen - self.predicted.total()

    def __str__(self) -> str:
        total = self.predicted.total()
        lines = [f"{self.predicted.title}"]
        lines += [f"predicted {text(total)}, seen {text(self.seen)}: {_gap(self.gap)}"]
        if self.causes:
            lines += ["", "what can account for it, likeliest first"]
        for one in self.causes:
            size = "?" if one.bytes is None else text(one.bytes)
            each = f" ({one.pieces:,} times)" if one.pieces > 1 else ""
            lines += [f"{size:>10}   {one.name}{each}, {one.likely}", f"{'':13}{one.look}"]
        if len(self.equal) > 1:
            known = f"known to {text(self.rounding)}" if self.rounding > 1 else "known to the byte"
            words = f"These {len(self.equal)} causes fit equally: {', '.join(self.equal)}."
            lines += ["", f"{words} A figure {known} cannot tell them apart; a look can."]
        if self.sums:
            lines += ["", "what comes near it together"]
        for sum_ in self.sums:
            lines += [f"{text(sum_.bytes):>10}   {' + '.join(sum_.names)}, {_left(sum_.left)}"]
        if self.ruled_out:
            lines += ["", "what cannot"]
        for one in self.ruled_out:
            why = "nothing at this peak" if not one.bytes else f"{text(one.bytes)}: too much"
            lines += [f"{'':10}   {one.name}: {why}"]
        return "\n".join([*lines, *(f"\n{note}" for note in self.notes)])

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
            "notes": list(self.notes),
            "equal": list(self.equal),
            "rounding_bytes": self.rounding,
        }


def _gap(gap: int) -> str:
    if gap > 0:
        return f"{text(gap)} are missing"
    if gap == 0:
        return "nothing is missing, +0 B"
    return f"{text(-gap)} less than predicted; was the peak between two looks?"


def _left(left: int) -> str:
    if left == 0:
        return "nothing left"
    return f"{text(left)} left" if left > 0 else f"{text(-left)} too much"


def _plain(found: Any) -> dict[str, Any]:
    return {name: getattr(found, name) for name in found.__fields__}
