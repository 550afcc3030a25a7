"""Causes of a gap together: up to three that come near it, their joint peak derived anew."""

from __future__ import annotations

from .case import Case
from .causes import Cause
from .figures import Figures, grown
from .findings import Sum, cause_of, pieces_of, several
from .watched import apart, terms

MOST = 3  # causes in one sum
TRIED = 8  # sums in which the allocator is replayed anew; in the others, as if it were alone
TRIED_OF_LESS = 32  # sums of causes that make a figure smaller, whose steps are simulated
NEAR = 3  # units that a sum may leave
CHANCE = 10  # the part of a piece that a sum with a counted cause may leave
SHOWN = 6


class Sums:
    """The sums of one gap."""

    def __init__(self, figures: Figures) -> None:
        self.figures = figures
        self.off: dict[tuple[str, ...], int] = {}  # by how much a sum misses what was watched

    def found(self) -> list[Sum]:
        """Up to three causes of different groups, joint peaks derived for the nearest ones."""
        from itertools import combinations

        sizes, less = self.figures.sizes, self.figures.sign < 0
        usable = [c for c in self.figures.known if sizes[c.name] > 0 and self.figures.tells(c)]
        usable = [c for c in usable if c.sized is None]  # a number made for the whole gap
        together = []
        for count in range(1, MOST + 1 - less):
            for causes in combinations(usable, count):
                pieced = sum(cause.counted for cause in causes)
                if len({cause.group for cause in causes}) == count and pieced < 2:
                    together.append(causes)
        # Of steps that take long, and of many causes, those that add up to the gap.
        tried = TRIED if self.figures.case.run.devices.ranks > 1 else TRIED_OF_LESS
        if tried == TRIED or less:
            together.sort(key=self._apart)
            together = together[:tried]
        guesses = []
        for causes in together:
            joint = self._joint(causes, replays=False)
            if joint is not None:
                guesses.append((self._score(causes, joint), causes))
        guesses.sort(key=lambda guess: -guess[0])
        found = []
        for _, causes in guesses[:TRIED]:
            joint = self._joint(causes)
            if joint is not None and abs(joint.left) <= NEAR * self.figures.unit:
                found.append((self._score(causes, joint), joint))
        found.sort(key=lambda pair: -pair[0])
        shown: list[Sum] = []
        for _, joint in found:
            if not any(self._idle(joint, other) for other in shown):
                shown.append(joint)
        return shown[:SHOWN]

    def _apart(self, causes: tuple[Cause, ...]) -> float:
        """How far they are from the gap if they add up; of savings, if each leaves its share, too.

        In half of the bytes there is half as much to save.
        """
        gap, base = self.figures.gap, self.figures.base
        sizes = [self.figures.sizes[cause.name] for cause in causes]
        found = float(abs(gap - sum(sizes)))
        if self.figures.sign < 0:
            left = float(base)
            for size in sizes:
                left *= 1 - size / base
            found = min(found, abs(base - left - gap))
        return found

    def _idle(self, joint: Sum, other: Sum) -> bool:
        """Whether a sum is one that is shown already and a cause that brings it no nearer.

        Of a counted cause the number of pieces may be another one then: fewer of them leave room.
        """
        mine, shown = ({cause_of(name) for name in one.names} for one in (joint, other))
        adds = abs(joint.bytes - other.bytes)
        if self.figures.sign < 0 and shown < mine and joint.bytes == other.bytes:
            return True  # what is not there any more cannot be made smaller
        return shown <= mine and (adds < self.figures.unit or other.left == 0) and joint.left != 0

    def _score(self, causes: tuple[Cause, ...], joint: Sum) -> float:
        """How likely: the logarithm of the priors, less what is left in units.

        As alone, n pieces are the less likely the larger n is: small ones would fit every gap.
        """
        from math import log

        left = max(abs(joint.left), self.off.get(joint.names, 0))
        chance = sum(1 + log(many) for many in map(pieces_of, joint.names) if many)
        return sum(log(cause.prior) for cause in causes) - left / self.figures.unit - chance

    def _joint(self, causes: tuple[Cause, ...], replays: bool = True) -> Sum | None:
        """What causes add together; a replay takes long, so its bytes may be those found alone."""
        case: Case | None = self.figures.case
        counted, size = None, 0
        for cause in causes:
            if cause.counted:
                counted = cause
            elif cause.level == "reserved" and not replays:
                size += self.figures.sizes[cause.name]
            elif case is not None:
                case = _turned(cause, case)
        if case is None:
            return None
        try:
            held = case.contents()
            size += self.figures.sign * (sum(held.values()) - self.figures.base)
            names = tuple(c.name for c in causes if c is not counted)
            if counted is not None:
                piece = counted.turn(case)
                each = (piece.peak() if piece else 0) - case.peak()
                if each <= 0:
                    return None
                pieces = max(1, (self.figures.gap - size + each // 2) // each)
                rounding = 0 if self.figures.level == "tensors" else self.figures.unit
                if abs(self.figures.gap - size - pieces * each) > max(rounding, each // CHANCE):
                    return None  # no nearer than pieces of this size come to any gap
                size += pieces * each
                names += (several(pieces, counted.name),)
                held = grown(held, piece.contents() if piece else {}, pieces)
        except ValueError:
            return None
        if self.figures.watched is not None:
            self.off[names] = apart(self.figures.watched.terms, terms(held))
        return Sum(names, size, self.figures.gap - size)


def _turned(cause: Cause, case: Case) -> Case | None:
    try:
        return cause.turn(case)
    except ValueError:  # two that no run has together
        return None
