"""Whether a regular expression is all of a name, in time that no expression can stretch.

Python's `re` tries one way through an expression after another, and "(.*)*x" has more of them than
anybody can wait for. Here all places in the name at which a part of the expression may end are
followed at once, as bits of one number; and what the expressions of one file take is counted.

Source      Thompson 1968, "Regular Expression Search Algorithm", CACM 11 (6); `re` itself takes the
            expression apart, and says which characters fit
Leaves out  back references, and groups that may not be tried again: refused by name
"""

from __future__ import annotations

import re

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

MOST_STEPS = 3_000_000  # of one file, some seconds; what trainers write takes a tenth of them
READING = 200  # steps: what it takes to read one
PLAIN = re.compile(r"[\w.-]*")  # a name, as nearly all are: `re` has one way through it


class Patterns:
    """The expressions of one file."""

    def __init__(self) -> None:
        self.left = MOST_STEPS
        self.known: dict[str, Any] = {}

    def full(self, pattern: str, name: str, around: str = "%s") -> bool:
        """Whether a pattern is all of a name.

        around      what is asked with the pattern in it, as peft asks
        Raises      ValueError for a pattern that is none or is not read, and where those of the
                    file take too long
        """
        self.step(pattern)
        whole = around % pattern
        if whole not in self.known:
            self.step(pattern, READING)
            try:
                self.known[whole] = _read(whole, PLAIN.fullmatch(pattern) is not None)
            except (re.error, RecursionError, OverflowError) as error:
                raise ValueError(f"{pattern!r} is no regular expression: {error}") from None
        found = self.known[whole]
        if isinstance(found, re.Pattern):
            return found.fullmatch(name) is not None
        parts, known = found
        walk = _Walk(self, pattern, known, name)
        return bool(walk.through(parts, 1, parts.state.flags) >> len(name))

    def step(self, pattern: str, steps: int = 1) -> None:
        """Count what a pattern takes."""
        self.left -= steps
        if self.left < 0:
            raise ValueError(f"{pattern!r}: the patterns of this file take too long to follow")


def _read(pattern: str, plain: bool) -> Any:
    """What `re` makes of it; or its parts, and room for what is known of them."""
    if plain:
        return re.compile(pattern)
    return re._parser.parse(pattern), {}  # type: ignore[attr-defined]


class _Walk:
    """A pattern's way through one name. Bit i of a number: the place before character i."""

    def __init__(self, patterns: Patterns, pattern: str, known: dict[Any, Any], name: str) -> None:
        self.patterns, self.pattern, self.known, self.name = patterns, pattern, known, name
        self.ends = len(name)
        self.places = {c: sum(1 << i for i, d in enumerate(name) if d == c) for c in {*name}}

    def through(self, parts: Any, at: int, flags: int) -> int:
        """The places after all parts, one after the other, from any of those in `at`."""
        for part in parts:
            self.patterns.step(self.pattern)
            at = self._after(part, at, flags)
            if not at:
                break
        return at

    def _after(self, part: Any, at: int, flags: int) -> int:
        kind, said = part[0].name, part[1]
        if kind in ("LITERAL", "NOT_LITERAL", "IN", "ANY"):
            return (at & self._fitting(part, flags)) << 1
        if kind == "AT":
            fits = self._alone(part, flags)
            return sum(bit for bit in _bits(at) if fits(self.name, bit.bit_length() - 1))
        if kind in ("MAX_REPEAT", "MIN_REPEAT"):
            least, most, parts = said
            return self._repeat(least, most, parts, at, flags)
        if kind == "BRANCH":
            return _union(self.through(each, at, flags) for each in said[1])
        if kind == "SUBPATTERN":
            return self.through(said[3], at, (flags | said[1]) & ~said[2])
        if kind in ("ASSERT", "ASSERT_NOT"):
            side, parts = said
            found = self._beside(side, parts, at, flags)
            return found if kind == "ASSERT" else at & ~found
        raise ValueError(f"{self.pattern!r}: {kind.lower()} is not read in a pattern")

    def _repeat(self, least: int, most: int, parts: Any, at: int, flags: int) -> int:
        """As often as the name has places, no more: then a round changes nothing."""
        for _ in range(min(least, self.ends + 1)):
            at = self.through(parts, at, flags)
        found = at
        for _ in range(min(most - least, self.ends + 1)):
            at = self.through(parts, at, flags) & ~found
            if not at:
                break
            found |= at
        return found

    def _beside(self, side: int, parts: Any, at: int, flags: int) -> int:
        """Those of the places before which the parts stand, or (side 1) after which."""
        if side > 0:
            return sum(bit for bit in _bits(at) if self.through(parts, bit, flags))
        every = _bits((2 << self.ends) - 1)
        return at & _union(self.through(parts, bit, flags) for bit in every)

    def _fitting(self, part: Any, flags: int) -> int:
        """The places before characters that a part of one character takes."""
        found = 0
        for character, places in self.places.items():
            key = id(part), flags, character
            if key not in self.known:
                self.known[key] = self._alone(part, flags)(character) is not None
            found |= places if self.known[key] else 0
        return found

    def _alone(self, part: Any, flags: int) -> Any:
        """What `re` matches this part with."""
        key = id(part), flags
        if key not in self.known:
            state = re._parser.State()  # type: ignore[attr-defined]
            alone = re._parser.SubPattern(state, [part])  # type: ignore[attr-defined]
            self.known[key] = re._compiler.compile(alone, flags).match  # type: ignore[attr-defined]
        return self.known[key]


def _bits(at: int) -> Iterator[int]:
    while at:
        yield at & -at
        at &= at - 1


def _union(places: Iterator[int]) -> int:
    found = 0
    for each in places:
        found |= each
    return found
