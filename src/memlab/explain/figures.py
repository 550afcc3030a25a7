"""The causes of one gap, each derived once: what it adds, and how far that is from the gap."""

from __future__ import annotations

from .case import Case
from .causes import CAUSES, LESS, Cause
from .watched import Watched, apart, terms

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

LEVELS = ("tensors", "allocated", "reserved", "device", "process")
# Of what was seen, the part that a figure of this level is true to: memlab's tracker has every
# byte but the odd scalar, the allocator's blocks are rounded up.
FINE, COARSE = {"tensors": 10**6, "allocated": 10**4}, 10**3


class Figures:
    """The causes that can be turned in one case, and the bytes of each.

    Where less was seen than predicted, the gap is what is less, and the bytes of a cause are what
    it saves: those of what every figure has in it besides are negative then.
    """

    def __init__(
        self,
        case: Case,
        gap: int,
        seen: int,
        level: str,
        watched: Watched | None = None,
        rounding: int = 0,
        at_least: bool = False,
        settled: Collection[str] = (),
    ) -> None:
        self.at_least = at_least  # whether the run would have held more than was seen
        self.sign = -1 if gap < 0 else 1
        self.case, self.gap, self.watched, self.level = case, abs(gap), watched, level
        self.base = case.peak()
        self.fine = max(1, seen // FINE.get(level, COARSE))
        # A sum is judged by what it leaves, in hundredths of what was seen; a tracker's figure is
        # exact, and what is left of it is worth ten times as much.
        self.unit = max(1, seen // (1000 if level == "tensors" else 100))
        self.rounding = rounding  # of the figure, in bytes
        self.sizes: dict[str, int] = {}
        self.pieces: dict[str, int] = {}  # of the causes that are sized by the gap
        self.held: dict[str, Mapping[str, int]] = {}
        self.known: list[Cause] = []
        cuda = case.run.backend == "cuda"
        for cause in CAUSES if gap > 0 else _LESS:
            if cause.name in settled:
                continue
            reach = LEVELS.index("allocated" if level == "process" else level)
            if gap and LEVELS.index(cause.level) <= reach:
                if cause.level == "tensors" or cuda or case.run.tokens is None:
                    self._try(cause)

    def _try(self, cause: Cause) -> None:
        try:
            if cause.sized is None:
                turned = cause.turn(self.case)
            elif (sized := cause.sized(self.case, self.gap + self.beside)) is not None:
                turned, self.pieces[cause.name] = sized
            else:
                return
            if turned is not None:
                held = turned.contents()
                self.sizes[cause.name] = self.sign * (sum(held.values()) - self.base)
                self.held[cause.name] = terms(held)
                self.known.append(cause)
        except ValueError:
            pass  # not described for this model: nothing can be said of it

    @property
    def beside(self) -> int:
        """Where less was seen: the most that what every figure has in it has hidden of it."""
        always = (cause for cause in self.known if cause.always and self.sign < 0)
        return sum(max(-low for low in self.ends(cause)) for cause in always)

    def ends(self, cause: Cause) -> tuple[int, int]:
        """The least and the most that a cause may add here, or save."""
        if cause.between is None:
            return self.sizes[cause.name], self.sizes[cause.name]
        low, high = cause.between
        return (low, high) if self.sign > 0 else (-high, -low)

    def pieces_in(self, cause: Cause, gap: int) -> int:
        """How many pieces of it come nearest to so many bytes: 1 of a cause that has none."""
        size = self.sizes[cause.name]
        if not cause.counted or size <= 0:
            return 1
        return max(1, (gap + min(self.unit, size) // 2) // size)

    def left(self, cause: Cause, pieces: int, low: int = 0, high: int = 0) -> int:
        """Bytes that it does not account for, beyond what the figure is known to.

        low, high   bytes of what stands beside it

        Term by term where they are known. A figure is rounded to the nearest or cut off, and does
        not say which: what was there is at most half a unit less, or not quite one unit more.
        """
        if self.watched is not None:
            whole = grown(terms(self.case.contents()), self.held[cause.name], pieces)
            return apart(self.watched.terms, whole)
        short = self.gap - pieces * self.sizes[cause.name]
        if self.at_least and short <= 0:
            return 0
        over, under = self.rounding // 2, max(0, self.rounding - 1)
        if self.sign < 0:
            over, under = under, over
        return max(0, short - high - over) if short > high else max(0, low - short - under)

    def tells(self, cause: Cause) -> bool:
        """Whether meeting the gap with it means anything: small pieces add up to every number."""
        if not cause.counted or self.sizes[cause.name] > 2 * self.unit:
            return True
        if self.watched is None:
            return False
        return self.left(cause, self.pieces_in(cause, self.gap)) == 0

    def closed_by_pieces(self, cause: Cause) -> bool:
        """Whether small pieces close the gap as far as it is known, and larger than that are."""
        size = self.sizes[cause.name]
        if self.watched is not None or size <= 2 * self.rounding:
            return False
        return self.left(cause, self.pieces_in(cause, self.gap)) == 0


# What every figure has in it, which comes first, and what makes one smaller.
_LESS = (*(cause for cause in CAUSES if cause.always), *LESS)


def grown(base: Mapping[str, int], one: Mapping[str, int], pieces: int) -> dict[str, int]:
    """The bytes by term with so many pieces, of which `one` has the first."""
    names = {*base, *one}
    return {n: base.get(n, 0) + pieces * (one.get(n, 0) - base.get(n, 0)) for n in names}
