"""A counter that read another moment than the peak of a steady step."""

from __future__ import annotations

from ..case import Case
from ..causes.cause import OFTEN, SELDOM, SOMETIMES, Cause

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Callable

PEAK = "max_memory_allocated() keeps the peak; memory_allocated() and nvidia-smi show a moment"


def _read(moment: str) -> Callable[[Case], Case | None]:
    def turned(case: Case) -> Case | None:
        if case.run.tokens is None or case.read is not None:
            return None
        return case.replace(read=moment)

    return turned


COUNTER = (
    Cause(
        "the counter read between two steps, not at the peak",
        OFTEN,
        "counter",
        _read("between_steps"),
        PEAK,
    ),
    Cause(
        "the counter read after backward, before the optimizer's step",
        SOMETIMES,
        "counter",
        _read("after_backward"),
        PEAK,
    ),
    Cause(
        "the counter read between forward and backward",
        SELDOM,
        "counter",
        _read("after_forward"),
        PEAK,
    ),
    Cause(
        "the first step: the optimizer has no states yet",
        OFTEN,
        "counter",
        _read("first_step"),
        "read the peak again after the second step",
    ),
)
