"""Marks of an axis of bytes: at powers of two, each with its unit."""

from ..units import text
from .canvas import Canvas, width_of
from .colours import GREY


def step_of(most: float, count: int) -> int:
    """The smallest power of two that needs at most `count` steps to reach `most`."""
    step = 1
    while step * count < most:
        step *= 2
    return step


def ticks(sheet: Canvas, left: float, y: float, right: float, scale: float) -> float:
    """Draw a horizontal axis from zero at `left` to `right`; the height it takes."""
    step = step_of((right - left) / scale, 5)
    sheet.line(left, y, right, y)
    size = 0
    while left + size * scale <= right:
        x, words = left + size * scale, text(size)
        sheet.line(x, y, x, y + 5)
        if x + width_of(words) / 2 <= right:
            sheet.words(x, y + 15, words, "middle", GREY)
        size += step
    return 26
