"""The causes of one gap: each derived alone, then up to three of them together.

Long, because how well one cause fits and how well a sum does are asked of the same figures.
"""

from __future__ import annotations

from ..base.frozen import dataclass
from .case import Case
from .causes import CAUSES, GRADES, Cause
from .findings import Finding, Sum, cause_of, pieces_of, several
from .watched import Watched, apart, terms

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Mapping

LEVELS = ("tensors", "allocated", "reserved", "device", "process")
MOST = 3  # causes in one sum
TRIED = 8  # sums in which the allocator is replayed anew; in the others, as if it were alone
NEAR = 3  # units that a sum may leave
CHANCE = 10  # the part of a piece that a sum with a counted cause may leave
SHOWN = 6
# Of what was seen, the part that a figure of this level is true to: memlab's tracker has every
# byte but the odd scalar, the allocator's blocks are rounded up.
FINE, COARSE = {"tensors": 10**6, "allocated": 10**4}, 10**3
SURE = 4.0  # what a leak that was watched weighs: about as much as fifty times the bytes


# Told even where they add nothing, for people blame them.
BLAMED = (
    "no checkpointing",
    "eager attention",
    "losses kept with their graphs",
    "old and new copies while loading",
    "AdamW's foreach temporaries",
)


@dataclass(frozen=True)
class Fit:
    """How well one cause fits the gap: how many pieces of it, and how likely it is the one.

    many        pieces as they are said, which are none of its own where it is sized by the gap
    closes      whether nothing is left, as far as the figure is known
    """

    pieces: int
    many: int
    closes: bool
    likely: float


def _order(fit: Fit) -> tuple[bool, float]:
    return not fit.closes, -fit.likely


class Search:
    """The causes of one gap, each derived once."""

    def __init__(
        self,
        case: Case,
        gap: int,
        seen: int,
        level: str,
        watched: Watched | None = None,
        rounding: int = 0,
    ) -> None:
        self.case, self.gap, self.watched, self.level = case, gap, watched, level
        self.base = case.peak()
        self.fine = max(1, seen // FINE.get(level, COARSE))
        # A sum is judged by what it leaves, in hundredths of what was seen; a tracker's figure is
        # exact, and what is left of it is worth ten times as much.
        self.unit = max(1, seen // (1000 if level == "tensors" else 100))
        self.rounding = rounding  # of the figure, in bytes
        self.sizes: dict[str, int] = {}
        self.pieces: dict[str, int] = {}  # of the causes that are sized by the gap
        self.equal: tuple[str, ...] = ()  # what closes the gap, as far as the figure tells
        self.held: dict[str, Mapping[str, int]] = {}
        self.off: dict[tuple[str, ...], int] = {}  # by how much a sum misses what was watched
        self.known: list[Cause] = []
        cuda = case.run.backend == "cuda"
        for cause in CAUSES:
            reach = LEVELS.index("allocated" if level == "process" else level)
            if gap > 0 and LEVELS.index(cause.level) <= reach:
                if cause.level == "tensors" or cuda or case.run.tokens is None:
                    self._try(cause)

    def _try(self, cause: Cause) -> None:
        try:
            if cause.sized is None:
                turned = cause.turn(self.case)
            elif (sized := cause.sized(self.case, self.gap)) is not None:
                turned, self.pieces[cause.name] = sized
            else:
                return
            if turned is not None:
                held = turned.contents()
                self.sizes[cause.name] = sum(held.values()) - self.base
                self.held[cause.name] = terms(held)
                self.known.append(cause)
        except ValueError:
            pass  # not described for this model: nothing can be said of it

    def alone(self) -> tuple[list[Finding], list[Finding]]:
        """Those that fit into the gap and those that do not, by how well they fit and how likely.

        First stand those that close the gap as far as the figure is known: of a cause that is not
        the one, chance seldom makes that. They are `equal`, and only how often each is the one
        orders them. Of the others what counts is the logarithm of how often a cause is the one,
        less that of what it leaves: the gap, or the difference term by term where the run was
        watched.
        """
        fits: list[tuple[tuple[float, ...], Finding]] = []
        not_: list[tuple[tuple[float, ...], Finding]] = []
        for cause in self.known:
            size = self.sizes[cause.name]
            fit = min((self._fit(cause, beside) for beside in self._beside(cause)), key=_order)
            found = Finding(
                cause.name, size * fit.pieces, fit.many, GRADES[cause.prior], cause.look
            )
            order = (not fit.closes, -fit.likely, -size * fit.pieces)
            if 0 < size <= self.gap + max(self.unit, self.rounding):  # one unit may be rounding
                fits.append((order, found))
            elif size > 0 or cause.name in BLAMED:
                not_.append(((-cause.prior, -size), found))
        for pair in (fits, not_):
            pair.sort(key=lambda one: one[0])
        self.equal = tuple(found.name for order, found in fits if not order[0])
        causes = [found for _, found in fits]
        if self.watched is None:  # which may see apart what has as many bytes
            causes = [found for some in self.entries(causes) for found in some]
        return causes, [found for _, found in not_]

    def entries(self, causes: list[Finding]) -> list[list[Finding]]:
        """The same in their order, those together that close the gap or have as many bytes.

        Of causes with one number of bytes, as far as the figure is known, it cannot say which.
        """
        found: list[list[Finding]] = []
        for cause in causes:
            for some in found:
                closing = cause.name in self.equal and some[0].name in self.equal
                same = self.watched is None and cause.same_bytes(some[0], self.rounding)
                if closing or same:
                    some.append(cause)
                    break
            else:
                found.append([cause])
        return found

    def _beside(self, cause: Cause) -> tuple[tuple[Cause, ...], ...]:
        """What the figure may have in it besides: nothing, or all that others of its level have."""
        others = tuple(c for c in self.known if c.always and c is not cause)
        return ((), others) if others else ((),)

    def _fit(self, cause: Cause, beside: tuple[Cause, ...]) -> Fit:
        """How well a cause fits, where the figure has these in it besides."""
        size = self.sizes[cause.name]
        ends = [c.between or (self.sizes[c.name],) * 2 for c in beside]
        low, high = sum(least for least, _ in ends), sum(most for _, most in ends)
        tells = self._tells(cause) or self._closed_by_pieces(cause)
        pieces = self._pieces(cause, self.gap - (low + high) // 2) if tells else 1
        many = self.pieces.get(cause.name, pieces)
        if cause.between is not None:
            low, high = low + cause.between[0] - size, high + cause.between[1] - size
        left = self._left(cause, pieces, low, high)
        closes = not left and high - low <= self.rounding and (tells or self.level != "tensors")
        return Fit(pieces, many, closes, self._likely(cause, many, left + (high - low) // 2))

    def _left(self, cause: Cause, pieces: int, low: int = 0, high: int = 0) -> int:
        """Bytes that it does not account for, beyond what the figure is known to.

        low, high   bytes of what stands beside it

        Term by term where they are known. A figure is rounded to the nearest or cut off, and does
        not say which: what was there is at most half a unit less, or not quite one unit more.
        """
        if self.watched is not None:
            whole = _grown(terms(self.case.contents()), self.held[cause.name], pieces)
            return apart(self.watched.terms, whole)
        short = self.gap - pieces * self.sizes[cause.name]
        if short > high:
            return max(0, short - high - self.rounding // 2)
        return max(0, low - short - max(0, self.rounding - 1))

    def _likely(self, cause: Cause, pieces: int, left: int) -> float:
        """The logarithm of how likely a cause is, up to what is the same for all of them.

        What it leaves has no scale, so that a gap ten times as wide is ten times less likely. Of n
        pieces each number is the less likely the larger it is: small ones would fit every gap.
        """
        from math import log

        found = log(cause.prior) - log(1 + left / self.fine)
        if cause.counted or cause.sized is not None:
            found -= 1 + log(pieces)
        return found + self._growth(cause, pieces)

    def _growth(self, cause: Cause, pieces: int) -> float:
        """What it means that each step left bytes behind, or that none did."""
        grows = self.watched.grows if self.watched is not None else None
        if grows is None:
            return 0.0
        if not grows:
            return -SURE if cause.counted and pieces > 1 else 0.0
        piece = self.sizes[cause.name]
        if not cause.counted or piece <= 0:
            return -SURE
        off = abs(grows - max(1, round(grows / piece)) * piece)
        return SURE if off * 20 <= grows else -SURE

    def _pieces(self, cause: Cause, gap: int) -> int:
        size = self.sizes[cause.name]
        if not cause.counted or size <= 0:
            return 1
        return max(1, (gap + min(self.unit, size) // 2) // size)

    def sums(self) -> list[Sum]:
        """Up to three causes of different groups, joint peaks derived for the nearest ones."""
        from itertools import combinations

        usable = [c for c in self.known if self.sizes[c.name] > 0 and self._tells(c)]
        usable = [c for c in usable if c.sized is None]  # a number made for the whole gap
        together = []
        for count in range(1, MOST + 1):
            for causes in combinations(usable, count):
                pieced = sum(cause.counted for cause in causes)
                if len({cause.group for cause in causes}) == count and pieced < 2:
                    together.append(causes)
        if self.case.run.devices.ranks > 1:  # whose steps take long: those that add up to the gap
            together.sort(key=lambda some: abs(self.gap - sum(self.sizes[c.name] for c in some)))
            together = together[:TRIED]
        guesses = []
        for causes in together:
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
        """Whether a sum is one that is shown already and a cause that brings it no nearer.

        Of a counted cause the number of pieces may be another one then: fewer of them leave room.
        """
        mine, shown = ({cause_of(name) for name in one.names} for one in (joint, other))
        adds = abs(joint.bytes - other.bytes)
        return shown <= mine and (adds < self.unit or other.left == 0) and joint.left != 0

    def _tells(self, cause: Cause) -> bool:
        """Whether meeting the gap with it means anything: small pieces add up to every number."""
        if not cause.counted or self.sizes[cause.name] > 2 * self.unit:
            return True
        if self.watched is None:
            return False
        return self._left(cause, self._pieces(cause, self.gap)) == 0

    def _closed_by_pieces(self, cause: Cause) -> bool:
        """Whether small pieces close the gap as far as it is known, and larger than that are."""
        size = self.sizes[cause.name]
        if self.watched is not None or size <= 2 * self.rounding:
            return False
        return self._left(cause, self._pieces(cause, self.gap)) == 0

    def _score(self, causes: tuple[Cause, ...], joint: Sum) -> float:
        """How likely: the logarithm of the priors, less what is left in units.

        As alone, n pieces are the less likely the larger n is: small ones would fit every gap.
        """
        from math import log

        left = max(abs(joint.left), self.off.get(joint.names, 0))
        chance = sum(1 + log(many) for many in map(pieces_of, joint.names) if many)
        return sum(log(cause.prior) for cause in causes) - left / self.unit - chance

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
            held = case.contents()
            size += sum(held.values()) - self.base
            names = tuple(c.name for c in causes if c is not counted)
            if counted is not None:
                piece = counted.turn(case)
                each = (piece.peak() if piece else 0) - case.peak()
                if each <= 0:
                    return None
                pieces = max(1, (self.gap - size + each // 2) // each)
                rounding = 0 if self.level == "tensors" else self.unit
                if abs(self.gap - size - pieces * each) > max(rounding, each // CHANCE):
                    return None  # no nearer than pieces of this size come to any gap
                size += pieces * each
                names += (several(pieces, counted.name),)
                held = _grown(held, piece.contents() if piece else {}, pieces)
        except ValueError:
            return None
        if self.watched is not None:
            self.off[names] = apart(self.watched.terms, terms(held))
        return Sum(names, size, self.gap - size)


def _grown(base: Mapping[str, int], one: Mapping[str, int], pieces: int) -> dict[str, int]:
    """The bytes by term with so many pieces, of which `one` has the first."""
    names = {*base, *one}
    return {n: base.get(n, 0) + pieces * (one.get(n, 0) - base.get(n, 0)) for n in names}
