"""Curves beside each other, such as the losses of two runs, each named where it ends."""

from collections.abc import Mapping, Sequence
from math import floor, isfinite, log10

from ..base.message import Message
from .canvas import SIZE, WIDTH, Canvas, Picture, descends, heading, width_of
from .colours import COLOURS, GREY, INK, colour_of

HIGH, GAP, STUB = 240, 18, 22
# The first curve is the baseline. The others take colours that are no memory term's neighbours in
# one picture, and a dash each, so that a print in grey tells them apart.
STROKES = (
    (INK, ""),
    ("#0072B2", "7 3"),
    ("#D55E00", "2 3"),
    ("#009E73", "9 3 2 3"),
    ("#CC79A7", "4 4"),
    ("#E69F00", "12 4"),
)


def curves(
    series: Mapping[str, Sequence[float]] | Mapping[str, Mapping[float, float]],
    *,
    title: str = "",
    x: str = "step",
    y: str = "loss",
) -> Picture:
    """Draw each series as a line, with its name at its end; the first is the baseline, in black.

    Shapes      series: {name: values at x = 1, 2, 3, …} or {name: {x: value}}; at most six
    Unit        that of the values; x and y name the axes
    Leaves out  logarithmic axes
    Raises      ValueError for no series, more than six, a series of fewer than two values or one
                with a value that is not finite
    """
    points = {name: _points(name, values) for name, values in series.items()}
    if not 1 <= len(points) <= len(STROKES):
        raise ValueError(f"{len(points)} series to draw; 1 to {len(STROKES)} can be told apart")
    everything = [point for line in points.values() for point in line]
    low_x, high_x = min(p[0] for p in everything), max(p[0] for p in everything)
    low_y, high_y = min(p[1] for p in everything), max(p[1] for p in everything)
    marks = decimal_ticks(low_y, high_y, 5)
    low_y, high_y = min(low_y, marks[0]), max(high_y, marks[-1])

    sheet = Canvas()
    top = heading(sheet, title) + 22
    base = top + HIGH
    left = max(width_of(_say(mark)) for mark in marks) + 12
    right = WIDTH - max(width_of(name, bold=True) for name in points) - STUB - 20
    across = (right - left) / ((high_x - low_x) or 1)
    up = HIGH / ((high_y - low_y) or 1)

    # Clear of the highest mark, which stands below it.
    sheet.words(0, top - (20 if descends(y) else 16), y, colour=GREY)
    for mark in marks:
        height = base - (mark - low_y) * up
        sheet.line(left, height, right, height, "#DDDDDD")
        sheet.words(left - 8, height, _say(mark), "end", GREY)
    for mark in decimal_ticks(low_x, high_x, 6):
        if low_x <= mark <= high_x:
            sheet.words(left + (mark - low_x) * across, base + 14, _say(mark), "middle", GREY)
    along = Message("{1} →", x) if isinstance(x, Message) else f"{x} →"
    sheet.words(right, base + 32, along, "end", GREY)
    ends = {}
    for (name, line), (colour, dash) in zip(points.items(), STROKES, strict=False):
        colour = colour_of(name) if name in COLOURS else colour
        placed = [(left + (a - low_x) * across, base - (b - low_y) * up) for a, b in line]
        sheet.trace(placed, colour, dash)
        ends[name] = (placed[-1][1], colour, dash)
    for name, height in _apart({name: end[0] for name, end in ends.items()}, top, base).items():
        sheet.trace([(right + 8, height), (right + 8 + STUB, height)], *ends[name][1:])
        sheet.words(right + 14 + STUB, height, name, bold=True)
    return sheet.picture(title or Message("{1} by {2}", y, x), base + 46)


def decimal_ticks(low: float, high: float, most: int) -> list[float]:
    """Round numbers (1, 2 or 5 times a power of ten apart) from below `low` to above `high`."""
    span = (high - low) or abs(high) or 1.0
    power = 10.0 ** floor(log10(span / most))
    step = next(k * power for k in (1, 2, 5, 10, 20) if span / (k * power) <= most)
    first = floor(low / step)
    count = -floor(-(high - first * step) / step)
    return [round((first + i) * step, 12) for i in range(max(count, 1) + 1)]


def _points(name: str, values) -> list[tuple[float, float]]:
    pairs = values.items() if isinstance(values, Mapping) else enumerate(values, start=1)
    found = sorted((float(a), float(b)) for a, b in pairs)
    if len(found) < 2:
        raise ValueError(f"{name}: {len(found)} values; a line needs two")
    if not all(isfinite(a) and isfinite(b) for a, b in found):
        raise ValueError(f"{name} has a value that is not finite; a line cannot go there")
    return found


def _say(value: float) -> str:
    return f"{value:,.6g}".replace("-", "−")


def _apart(heights: Mapping[str, float], top: float, base: float) -> dict[str, float]:
    """Heights for the names, moved down or up by just what keeps them from touching."""
    placed: dict[str, float] = {}
    lowest = top - GAP
    for name in sorted(heights, key=heights.__getitem__):
        lowest = max(heights[name], lowest + GAP)
        placed[name] = lowest
    ceiling = base + SIZE / 2
    for name in reversed(list(placed)):
        placed[name] = min(placed[name], ceiling)
        ceiling = placed[name] - GAP
    return placed
