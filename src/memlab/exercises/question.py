"""One exercise: how its answer is computed, and what Python's own values are to the judge."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import isfinite

from ..base.messages import number, say
from . import judge

Value = int | float | Fraction | str
Exact = tuple[int, int] | str


@dataclass(frozen=True)
class Exercise:
    """One question: how its answer is computed and what helps whoever misses it."""

    name: str
    answer: Callable[[], Value]
    hint: str
    unit: str
    wrong: Mapping[Callable[[], Value], str]

    def judge(self, given: object) -> str:
        """The line to print: ○, ✓ with the answer, or ✗ with a hint."""
        if given is ...:
            return f"{judge.WAITS} …"
        right = exact(self.answer())
        value = str(given) if isinstance(right, str) else self._value(given)
        if value is None:
            problem = judge.NOT_BYTES if self.unit == judge.BYTES else judge.NOT_A_NUMBER
            return f"{judge.WRONG} {say(problem)}"
        wrong = [(exact(slip()), sentence) for slip, sentence in self.wrong.items()]
        mark, told = judge.judged(value, right, self.unit, self.hint, wrong)
        # Figures have no words to look up.
        return f"{mark} {number(told) if type(told) is str and mark == judge.RIGHT else say(told)}"

    def _value(self, given: object) -> Exact | None:
        """The answer as the judge takes it; None for what is no number."""
        if isinstance(given, (str, int, Fraction)) and not isinstance(given, bool):
            return exact(given)
        if isinstance(given, bool) or not hasattr(given, "__float__"):
            return None
        found = float(given)
        return exact(found) if isfinite(found) else None


def exact(value: Value) -> Exact:
    """A value as the judge has it: a text, or a ratio of whole numbers in lowest terms."""
    return value if isinstance(value, str) else value.as_integer_ratio()
