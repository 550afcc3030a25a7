"""Each cause of a gap alone: how well it fits, how likely it is the one, and in which order."""

from __future__ import annotations

from ..base.frozen import dataclass
from ..base.message import Message
from .causes import GRADES, Cause
from .figures import Figures
from .findings import SIZED, Finding

SURE = 4.0  # what a leak that was watched weighs: about as much as fifty times the bytes
# Told even where they add nothing, for people blame them.
BLAMED = (
    "no checkpointing",
    "eager attention",
    "losses kept with their graphs",
    "old and new copies while loading",
    "AdamW's foreach temporaries",
    "blocks are checkpointed",
    "the counter read between two steps, not at the peak",
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


class SingleCauses:
    """Those that fit into the gap, those that do not, and those that close it."""

    def __init__(self, figures: Figures) -> None:
        self.figures = figures
        self.equal: tuple[str, ...] = ()  # what closes the gap, as far as the figure tells

    def ranked(self) -> tuple[list[Finding], list[Finding]]:
        """Those that fit into the gap and those that do not, by how well they fit and how likely.

        First stand those that close the gap as far as the figure is known: of a cause that is not
        the one, chance seldom makes that. They are `equal`, and only how often each is the one
        orders them. Of the others what counts is the logarithm of how often a cause is the one,
        less that of what it leaves: the gap, or the difference term by term where the run was
        watched.
        """
        fits: list[tuple[tuple[float, ...], Finding]] = []
        not_: list[tuple[tuple[float, ...], Finding]] = []
        # One unit may be rounding.
        most = self.figures.gap + max(self.figures.unit, self.figures.rounding)
        most += self.figures.beside
        for cause in self.figures.known:
            size = self.figures.sizes[cause.name]
            fit = min((self._fit(cause, beside) for beside in self._beside(cause)), key=_order)
            found = self._finding(cause, size * fit.pieces, fit.many)
            order = (not fit.closes, -fit.likely, -size * fit.pieces)
            if 0 < size <= most or (size > 0 and self.figures.at_least):
                fits.append((order, found))
            elif size > 0 or cause.name in BLAMED:
                not_.append(((-cause.prior, -size), found))
        for pair in (fits, not_):
            pair.sort(key=lambda one: one[0])
        self.equal = tuple([found.name for order, found in fits if not order[0]])
        causes = [found for _, found in fits]
        if self.figures.watched is None:  # which may see apart what has as many bytes
            causes = [found for some in self.entries(causes) for found in some]
        return causes, [found for _, found in not_]

    def _finding(self, cause: Cause, bytes: int, many: int) -> Finding:
        """Of a cause that makes less, the number that comes nearest belongs to its name."""
        name = cause.name
        if self.figures.sign < 0 and cause.sized is not None:
            name, many = Message(SIZED, name=name, number=f"{many:,}"), 1
        return Finding(name, bytes, many, GRADES[cause.prior], cause.look)

    def entries(self, causes: list[Finding]) -> list[list[Finding]]:
        """The same in their order, those together that close the gap or have as many bytes.

        Of causes with one number of bytes, as far as the figure is known, it cannot say which.
        """
        found: list[list[Finding]] = []
        for cause in causes:
            for some in found:
                closing = cause.name in self.equal and some[0].name in self.equal
                same = self.figures.watched is None and cause.same_bytes(
                    some[0], self.figures.rounding
                )
                if closing or same:
                    some.append(cause)
                    break
            else:
                found.append([cause])
        return found

    def _beside(self, cause: Cause) -> tuple[tuple[Cause, ...], ...]:
        """What the figure may have in it besides: nothing, or all that others of its level have."""
        others = tuple(c for c in self.figures.known if c.always and c is not cause)
        return ((), others) if others else ((),)

    def _fit(self, cause: Cause, beside: tuple[Cause, ...]) -> Fit:
        """How well a cause fits, where the figure has these in it besides."""
        size = self.figures.sizes[cause.name]
        ends = [self.figures.ends(c) for c in beside]
        low, high = sum(least for least, _ in ends), sum(most for _, most in ends)
        tells = self.figures.tells(cause) or self.figures.closed_by_pieces(cause)
        pieces = self.figures.pieces_in(cause, self.figures.gap - (low + high) // 2) if tells else 1
        many = self.figures.pieces.get(cause.name, pieces)
        if cause.between is not None:
            least, most = self.figures.ends(cause)
            low, high = low + least - size, high + most - size
        left = self.figures.left(cause, pieces, low, high)
        closes = (
            not left
            and high - low <= self.figures.rounding
            and (tells or self.figures.level != "tensors")
        )
        return Fit(pieces, many, closes, self._likely(cause, many, left + (high - low) // 2))

    def _likely(self, cause: Cause, pieces: int, left: int) -> float:
        """The logarithm of how likely a cause is, up to what is the same for all of them.

        What it leaves has no scale, so that a gap ten times as wide is ten times less likely. Of n
        pieces each number is the less likely the larger it is: small ones would fit every gap.
        """
        from math import log

        found = log(cause.prior) - log(1 + left / self.figures.fine)
        if cause.counted or cause.sized is not None:
            found -= 1 + log(pieces)
        return found + self._growth(cause, pieces)

    def _growth(self, cause: Cause, pieces: int) -> float:
        """What it means that each step left bytes behind, or that none did."""
        grows = self.figures.watched.grows if self.figures.watched is not None else None
        if grows is None:
            return 0.0
        if not grows:
            return -SURE if cause.counted and pieces > 1 else 0.0
        piece = self.figures.sizes[cause.name]
        if not cause.counted or piece <= 0:
            return -SURE
        off = abs(grows - max(1, round(grows / piece)) * piece)
        return SURE if off * 20 <= grows else -SURE
