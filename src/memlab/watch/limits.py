"""What a limit says, and what the machine has: the two numbers that a guard compares."""

from __future__ import annotations

import re
from pathlib import Path

from ..base.machine import FILES, control_groups, number
from ..units import parse, text


def limit(option: str, words: str | None, total: int, whose: str) -> int | None:
    """Bytes of a limit such as "20GiB", "1,5e9 B" is none, "90%" of the total; None for None.

    Unit        bytes, rounded down where it is a share
    Raises      ValueError for an unknown unit, for a number without one, for nothing, and for more
                than there is; the message begins with the option
    """
    if words is None:
        return None
    try:
        size = _share(words, total) if words.strip().endswith("%") else _size(words)
    except ValueError as error:
        raise ValueError(f"{option}: {error}") from None
    if size <= 0:
        raise ValueError(f"{option} {words} is nothing; a limit is above zero")
    if size > total:
        raise ValueError(f"{option} {words} is above the {text(total)} of {whose}")
    return size


def seconds(option: str, value: float, *, least: float = 0.0, least_allowed: bool = True) -> float:
    """The value, if it is a number of seconds that one can wait.

    Raises      ValueError for one that is too small, not a number, or endless
    """
    low = value >= least if least_allowed else value > least
    if not low or not value < 1e6:  # also false for a NaN
        above = "zero or more" if least_allowed else "more than zero"
        raise ValueError(f"{option} {value:g} is no time to wait; {above} seconds are needed")
    return value


def machine_bytes(total: int, root: Path = Path("/")) -> int:
    """The memory that this process may use: the machine's, or less where a container allows less.

    Source      Linux, Documentation/admin-guide/cgroup-v2.rst (memory.max) and
                cgroup-v1/memory.rst (memory.limit_in_bytes)
    Unit        bytes
    Leaves out  limits that a container cannot see, and systems without control groups
    """
    found = (number(folder / FILES[version][0]) for folder, version in control_groups(root))
    return min([total, *filter(None, found)])


def _share(words: str, total: int) -> int:
    found = re.fullmatch(r"(\d{1,3})(?:\.(\d{1,6}))? ?%", words.strip(), re.ASCII)
    if not found:
        raise ValueError(f"{words!r} is no share such as 90%")
    after = found[2] or ""
    whole, parts = int(found[1] + after), 100 * 10 ** len(after)
    if whole > parts:
        raise ValueError(f"{words} is more than all of it")
    return total * whole // parts


def _size(words: str) -> int:
    if not words.strip()[-1:].isalpha():
        raise ValueError(f"{words!r} has no unit; say 22GiB, 22GB or 90%")
    return parse(words)
