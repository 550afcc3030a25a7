"""A cause: something that a program does, as a switch to be turned, and how often it is the one."""

from __future__ import annotations

from ...base.frozen import dataclass
from ...terms.context import READINGS
from ..case import Case

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Callable

# How often a cause is the one, among runs that need too much: our judgement, from the issues of
# PyTorch, transformers and vLLM and from the field notes of this book. No statistics exist.
OFTEN, SOMETIMES, SELDOM = 0.3, 0.1, 0.03
GRADES = {OFTEN: "often", SOMETIMES: "sometimes", SELDOM: "seldom"}
CONTEXTS = [reading.context for reading in READINGS if reading.loading == "LAZY"]


@dataclass(frozen=True)
class Cause:
    """Something that a program does, and nobody put into the prediction.

    prior       OFTEN, SOMETIMES or SELDOM
    group       causes of one group exclude each other: a tensor has one format
    turn        the case with this cause in it; None where it is so already or cannot be
    look        the experiment that confirms it or rules it out
    level       the narrowest count that shows it: "tensors", "reserved" or "device"
    counted     it comes in pieces, and `turn` adds one of them
    sized       of a cause whose pieces are no multiples: the case with as many as come nearest to
                a gap, and how many they are
    always      every figure of its level has it in it
    between     of a cause that was read and not derived: the least and the most that was read
    """

    name: str
    prior: float
    group: str
    turn: Callable[[Case], Case | None]
    look: str
    level: str = "tensors"
    counted: bool = False
    sized: Callable[[Case, int], tuple[Case, int] | None] | None = None
    always: bool = False
    between: tuple[int, int] | None = None


DTYPES = "print({p.dtype for p in model.parameters()})"
STATES = "print({v.dtype for s in optimizer.state.values() for v in s.values()})"
LINES = "with memlab.explain() as live: two or three steps; print(live)"
EMPTY = 'memlab watch -- python -c "import torch; torch.ones(1)"'
