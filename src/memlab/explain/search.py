"""The search for the causes of one gap: alone, and up to three of them together."""

from __future__ import annotations

from .combined_causes import Sums
from .figures import LEVELS as LEVELS
from .figures import Figures
from .single_causes import SingleCauses

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Collection

    from .case import Case
    from .findings import Finding, Sum
    from .watched import Watched


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
        at_least: bool = False,
        settled: Collection[str] = (),
    ) -> None:
        figures = Figures(case, gap, seen, level, watched, rounding, at_least, settled)
        self.gap, self.unit = gap, figures.unit
        self._alone, self._sums = SingleCauses(figures), Sums(figures)

    @property
    def equal(self) -> tuple[str, ...]:
        """What closes the gap as far as the figure tells, when `alone` has been asked."""
        return self._alone.equal

    def alone(self) -> tuple[list[Finding], list[Finding]]:
        """Those that fit into the gap, closing ones first, then the most likely; and the others."""
        return self._alone.ranked()

    def entries(self, causes: list[Finding]) -> list[list[Finding]]:
        """The same in their order, those together that no figure can tell apart."""
        return self._alone.entries(causes)

    def sums(self) -> list[Sum]:
        """Up to three causes of different groups, joint peaks derived for the nearest ones."""
        return self._sums.found()
