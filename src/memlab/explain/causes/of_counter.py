"""A counter that read another moment than the peak of a steady step."""

from __future__ import annotations

from ..case import Case
from .cause import OFTEN, SELDOM, SOMETIMES, Cause

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from .turns import Turn

PEAK = "max_memory_allocated() keeps the peak; memory_allocated() and nvidia-smi show a moment"
AGAIN = "read the peak again after the second step"
TWO = "the counter read between two steps, not at the peak"
BACKWARD = "the counter read after backward, before the optimizer's step"
FORWARD = "the counter read between forward and backward"
FIRST = "the first step: the optimizer has no states yet"


def _read(moment: str) -> Turn:
    def turned(case: Case) -> Case | None:
        if case.run.tokens is None or case.read is not None:
            return None
        return case.replace(read=moment)

    return turned


LESS = (
    Cause(TWO, OFTEN, "counter", _read("between_steps"), PEAK),
    Cause(BACKWARD, SOMETIMES, "counter", _read("after_backward"), PEAK),
    Cause(FORWARD, SELDOM, "counter", _read("after_forward"), PEAK),
    Cause(FIRST, OFTEN, "counter", _read("first_step"), AGAIN),
)
