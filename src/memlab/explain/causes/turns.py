"""What a cause turns: one field of a run, a change of memlab.fit, the number nearest to a gap."""

from __future__ import annotations

from ...run import Run
from ..case import Case, of_run

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Turn = Callable[[Case], Case | None]
    Made = Callable[[int], Case | None]


def run_with(**fields: Any) -> Turn:
    """The case whose run has these fields."""
    return of_run(lambda run: run.replace(**fields))


def divided(run: Run, **how: Any) -> Run:
    """The run over devices that divide otherwise."""
    return run.replace(devices=run.devices.changed(**how))


def fsdp_with(**how: Any) -> Turn:
    """The case whose FSDP2 has these fields; None where there is none."""
    return of_run(lambda run: divided(run, **how) if run.devices.fsdp else None)


def as_changed(name: str) -> Turn:
    """The case with this change, which somebody has made and not told; None: it is so already."""

    def turned(case: Case) -> Case | None:
        from ..last_changes import (  # only who saw less than was predicted needs them
            EVERY,
            LAST,
            LIGERS,
        )

        if case.run.tokens is None or case.run.phase != "train":
            return None
        change = next(change for change in (*EVERY, LIGERS, *LAST) if change.name == name)
        recipe, run = change.turn(case.recipe, case.run)
        same = (recipe, run) == (case.recipe, case.run)
        return None if same else case.replace(recipe=recipe, run=run)

    return turned


def closest(cases: Any, goal: int) -> tuple[Case, int] | None:
    """Of some (case or None, number) the one whose peak comes nearest to `goal`, the first of two.

    Raises      ValueError for what is not described
    """
    there = [(case, number) for case, number in cases if case is not None]
    return min(there, key=lambda pair: abs(pair[0].peak() - goal), default=None)


def nearest(made: Made, low: int, high: int, goal: int) -> tuple[Case, int] | None:
    """Of the numbers from low to high the one whose peak comes nearest to `goal`, and its case.

    made        the case of a number, whose peak does not fall as the number grows; None where none
    Raises      ValueError for what is not described
    """
    looked: dict[int, int] = {}  # peaks that are known
    for end in (low, high) if high - low > 2 else ():
        try:
            case = made(end)
        except ValueError:  # what is not described so far out may be in between
            continue
        if case is not None:
            looked[end] = case.peak()
    if looked.get(high, goal + 1) <= goal:
        low = high - 1
    elif looked.get(low, goal) > goal:
        high = low + 1
    slow = 0  # looks, one after the other, that left more than half
    while high - low > 1:
        middle, wide = _between(low, high, looked if slow < 2 else {}, goal), high - low
        case = made(middle)
        if case is None:
            return None
        looked[middle] = case.peak()
        low, high = (middle, high) if looked[middle] <= goal else (low, middle)
        slow = slow + 1 if 2 * (high - low) > wide else 0
    return closest(((made(count), count) for count in (low, high)), goal)


def _between(low: int, high: int, looked: dict[int, int], goal: int) -> int:
    """Where to look next: where the line between the peaks at both ends meets the goal.

    A peak grows with a number along a line, from one bend to the next. Where a peak is not known
    it is the middle.
    """
    first, last = looked.get(low), looked.get(high)
    if first is None or last is None or last <= first:
        return (low + high) // 2
    return min(max(low + (goal - first) * (high - low) // (last - first), low + 1), high - 1)
