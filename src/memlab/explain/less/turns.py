"""A case as a change of memlab.fit makes it, and the number that comes nearest to a gap."""

from __future__ import annotations

from ..case import Case
from ..resorts import EVERY, LAST, LIGERS

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Callable

    Made = Callable[[int], Case | None]

KNOWN = {change.name: change for change in (*EVERY, LIGERS, *LAST)}


def as_changed(name: str) -> Callable[[Case], Case | None]:
    """The case with this change, which somebody has made and not told; None: it is so already."""
    change = KNOWN[name]

    def turned(case: Case) -> Case | None:
        if case.run.tokens is None or case.run.phase != "train":
            return None
        recipe, run = change.turn(case.recipe, case.run)
        same = (recipe, run) == (case.recipe, case.run)
        return None if same else case.replace(recipe=recipe, run=run)

    return turned


def nearest(made: Made, low: int, high: int, goal: int) -> tuple[Case, int] | None:
    """Of the numbers from low to high the one whose peak comes nearest to `goal`, and its case.

    made        the case of a number, whose peak does not fall as the number grows; None where none
    Raises      ValueError for what is not described
    """
    while high - low > 1:
        middle = (low + high) // 2
        case = made(middle)
        if case is None:
            return None
        low, high = (middle, high) if case.peak() <= goal else (low, middle)
    ends = [(case, count) for count in (low, high) if (case := made(count)) is not None]
    return min(ends, key=lambda end: abs(end[0].peak() - goal), default=None)
