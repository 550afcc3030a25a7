"""The causes of one gap: each derived alone, then up to three of them together."""

from __future__ import annotations

from .case import Case
from .causes import CAUSES, GRADES, Cause
from .findings import Finding, Sum

LEVELS = ("tensors", "allocated", "reserved", "device", "process")
MOST = 3  # causes in one sum
TRIED = 8  # sums in which the allocator is replayed anew; in the others, as if it were alone
NEAR = 3  # units that a sum may leave
SHOWN = 6


# Told even where they add nothing, for people blame them.
BLAMED = (
    "no checkpointing",
    "eager attention",
    "losses kept with their graphs",
    "old and new copies while loading",
    "AdamW's foreach temporaries",
)


class Search:
    """The causes of one gap, each derived once."""

    def __init__(self, case: Case, gap: int, seen: int, level: str) -> None:
        self.case, self.gap = case, gap
        self.base = case.peak()
        # A sum is judged by what it leaves, in hundredths of what was seen; a tracker's figure is
        # exact, and what is left of it is worth ten times as much.
        self.unit = max(1, seen // (1000 if level == "tensors" else 100))
        self.sizes: dict[str, int] = {}
        self.known: list[Cause] = []
        cuda = case.run.backend == "cuda"
        for cause in CAUSES:
            reach = LEVELS.index("allocated" if level == "process" else level)
            if gap > 0 and LEVELS.index(cause.level) <= reach:
                if cause.level == "tensors" or cuda or case.run.tokens is None:
                    self._try(cause)

    def _try(self, cause: Cause) -> None:
        try:
            turned = cause.turn(self.case)
            if turned is not None:
                self.sizes[cause.name] = turned.peak() - self.base
                self.known.append(cause)
        except ValueError:
            pass  # not described for this model: nothing can be said of it

    def alone(self) -> tuple[list[Finding], list[Finding]]:
        """Those that fit into the gap and those that do not, likeliest first.

        One that closes the gap stands first, whatever is usual; then those that close a tenth of
        it or more; among equals the likelier, then the larger one.
        """
        fits: list[tuple[tuple[float, ...], Finding]] = []
        not_: list[tuple[tuple[float, ...], Finding]] = []
        for cause in self.known:
            size = self.sizes[cause.name]
            pieces = self._pieces(cause, self.gap) if self._tells(cause) else 1
            found = Finding(cause.name, size * pieces, pieces, GRADES[cause.prior], cause.look)
            # One unit may be rounding.
            covers = size * pieces
            closes = abs(self.gap - covers) <= self.unit and self._tells(cause)
            order = (not closes, 10 * covers < self.gap, -cause.prior, -covers)
            if 0 < size <= self.gap + self.unit:
                fits.append((order, found))
            elif size > 0 or cause.name in BLAMED:
                not_.append((order[2:], found))
        for pair in (fits, not_):
            pair.sort(key=lambda one: one[0])
        return [found for _, found in fits], [found for _, found in not_]

    def _pieces(self, cause: Cause, gap: int) -> int:
        size = self.sizes[cause.name]
        return max(1, (gap + self.unit // 2) // size) if cause.counted and size > 0 else 1

    def sums(self) -> list[Sum]:
        """Up to three causes of different groups, joint peaks derived for the nearest ones."""
        from itertools import combinations

        usable = [c for c in self.known if self.sizes[c.name] > 0 and self._tells(c)]
        guesses = []
        for count in range(1, MOST + 1):
            for causes in combinations(usable, count):
                if len({cause.group for cause in causes}) == count:
                    joint = self._joint(causes, replays=False)
                    if joint is not None:
                        guesses.append((self._score(causes, joint), causes))
        guesses.sort(key=lambda guess: -guess[0])
        found = []
        for _, causes in guesses[:TRIED]:
            joint = self._joint(causes)
            if joint is not None and abs(joint.left) <= NEAR * self.unit:
                found.append((self._score(causes, joint), joint))
        found.sort(key=lambda pair: -pair[0])
        shown: list[Sum] = []
        for _, joint in found:
            if not any(self._idle(joint, other) for other in shown):
                shown.append(joint)
        return shown[:SHOWN]

    def _idle(self, joint: Sum, other: Sum) -> bool:
        """Whether a sum is one that is shown already and a cause that adds next to nothing."""
        adds = abs(joint.bytes - other.bytes)
        return set(other.names) <= set(joint.names) and adds < self.unit and joint.left != 0

    def _tells(self, cause: Cause) -> bool:
        """Whether meeting the gap with it means anything: small pieces add up to every number."""
        return not cause.counted or self.sizes[cause.name] > 2 * self.unit

    def _score(self, causes: tuple[Cause, ...], joint: Sum) -> float:
        """How likely: the logarithm of the priors, less what is left in units."""
        from math import log

        return sum(log(cause.prior) for cause in causes) - abs(joint.left) / self.unit

    def _joint(self, causes: tuple[Cause, ...], replays: bool = True) -> Sum | None:
        """What causes add together; a replay takes long, so its bytes may be those found alone."""
        case: Case | None = self.case
        counted, size = None, 0
        for cause in causes:
            if cause.counted:
                counted = cause
            elif cause.level == "reserved" and not replays:
                size += self.sizes[cause.name]
            elif case is not None:
                case = cause.turn(case)
        if case is None:
            return None
        try:
            size += case.peak() - self.base
            names = tuple(c.name for c in causes if c is not counted)
            if counted is not None:
                piece = counted.turn(case)
                each = (piece.peak() if piece else 0) - case.peak()
                if each <= 0:
                    return None
                pieces = max(1, (self.gap - size + each // 2) // each)
                size += pieces * each
                names += (f"{pieces:,} × {counted.name}",)
        except ValueError:
            return None
        return Sum(names, size, self.gap - size)
