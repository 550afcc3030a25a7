"""How many of a test's many cases run: a few, or all of them where MEMLAB_DEPTH is more than 1."""

import os
import re
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

DEPTH = int(os.environ.get("MEMLAB_DEPTH", "1"))


def chosen(names: Sequence[str], count: int) -> list[int]:
    """Places of so many of these names: the same in every process, and as unlike as may be.

    The first and the last; then, again and again, the one whose words were had the fewest times
    (a family, a format, a door), and of several the one that is farthest from those that are taken.
    """
    size = len(names)
    if count >= size:
        return [*range(size)]
    words = [set(re.findall(r"[\w.=+]+", name)) or {name} for name in names]
    had: Counter[str] = Counter()
    taken: list[int] = []

    def rank(place: int) -> tuple[Fraction, int, int]:
        rare = sum(Fraction(1, 1 + had[word]) for word in words[place]) / len(words[place])
        return rare, min(abs(place - one) for one in taken), -place

    while len(taken) < count:
        left = {*range(size)}.difference(taken)
        place = (0, size - 1)[len(taken)] if len(taken) < 2 else max(left, key=rank)
        taken.append(place)
        had.update(words[place])
    return sorted(taken)


def few(count: int, cases: Sequence[Any]) -> tuple[Any, ...]:
    """So many of the cases, chosen as above: for those that one fixture runs before the tests."""
    if DEPTH > 1:
        return tuple(cases)
    return tuple(cases[place] for place in chosen([str(case) for case in cases], count))
