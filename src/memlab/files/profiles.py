"""What torch.profiler writes: memory timelines, and traces with their [memory] events.

Source      torch.profiler._memory_profiler (export_memory_timeline), kineto's output_json.cpp
"""

from __future__ import annotations

import re

from .seen import Seen

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

EVENT = '"[memory]"'
CATEGORIES = (
    *("parameter", "optimizer state", "input", "temporary", "activation", "gradient"),
    *("autograd detail", "unknown"),
)
WINDOW = 800  # characters of one event
FIELDS = {
    name: re.compile(rf'"{name}": {{0,2}}(-?\d{{1,18}})\b')
    for name in ("Total Allocated", "Total Reserved", "Device Type", "Device Id")
}
CUDA = 1  # c10::DeviceType
MOST_EVENTS = 5_000_000
PICTURE = "an HTML memory timeline holds a picture and no figures; write it as .json"


def timeline(found: Any) -> Seen | None:
    """The peak of export_memory_timeline("x.json"), or of "x.raw.json.gz"; None: it is neither.

    Shapes      [times, [[0, bytes of each category] of each time]]; raw: [time, action, bytes,
                category] of each event, where a free one has bytes below 0
    """
    if not isinstance(found, list) or not found:
        return None
    if len(found) == 2 and all(isinstance(each, list) for each in found) and _numbers(found[0]):
        rows = found[1]
        if len(rows) != len(found[0]) or not all(map(_numbers, rows)) or not rows:
            return None
        sums = [sum(row) for row in rows]
        return _peak(max(sums), rows[sums.index(max(sums))][1:])
    if not all(_numbers(row) and len(row) == 4 for row in found):
        return None
    held, most, top = [0] * len(CATEGORIES), 0, [0] * len(CATEGORIES)
    for _, _, change, category in found:
        if not 0 <= category < len(held):
            return None
        held[category] += change
        if (total := sum(held)) > most:
            most, top = total, [*held]
    return _peak(most, top)


def _numbers(row: Any) -> bool:
    return isinstance(row, list) and all(type(each) is int and abs(each) < 2**63 for each in row)


def _peak(most: int, row: list[int]) -> Seen | None:
    from ..units import text

    if most <= 0:
        return None
    parts = sorted(zip(row, CATEGORIES, strict=False), key=lambda pair: -pair[0])
    lines = [f"{text(size):>10}   {name}" for size, name in parts if size > 0]
    return Seen(most, "allocated", ("at its peak, by category", *lines), "a memory timeline")


def trace(words: str) -> Seen | None:
    """The peak of a trace with profile_memory=True, of the card with most; None: no such events."""
    tops: dict[tuple[int, int], list[int]] = {}
    at = words.find(EVENT)
    for _ in range(MOST_EVENTS):
        if at < 0:
            break
        after = words.find(EVENT, at + 1)
        window = words[at : min(at + WINDOW, after if after > 0 else len(words))]
        told = {name: found for name, one in FIELDS.items() if (found := one.search(window))}
        if len(told) == len(FIELDS):
            sizes = {name: int(found[1]) for name, found in told.items()}
            most = tops.setdefault((sizes["Device Type"], sizes["Device Id"]), [0, 0])
            most[0] = max(most[0], sizes["Total Allocated"])
            most[1] = max(most[1], sizes["Total Reserved"])
        at = after
    if not tops:
        return None
    card = max(tops, key=lambda one: (one[0] == CUDA, *tops[one]))
    allocated, reserved = tops[card]
    if allocated <= 0:
        return None
    cuda = card[0] == CUDA
    return Seen(
        *(allocated, "allocated", (), "a profiler trace"),
        rounding=1,
        allocated=allocated,
        reserved=reserved if cuda else None,
        device=card[1] if cuda else None,
    )
