"""What a watched program held, second by second: a line, its limits, its peak."""

from collections.abc import Mapping, Sequence

from ..base.message import Message
from ..units import text
from .canvas import WIDTH, Canvas, Picture, heading, n, width_of
from .colours import GREY, INK
from .lines import decimal_ticks
from .ticks import step_of

HIGH, MOST = 240, 280
FILL, LIMIT = "#999999", "#D55E00"  # grey: nobody has said which term these bytes belong to


def watched(
    looks: Sequence[tuple[float, int]],
    *,
    title: str,
    limits: Mapping[str, int] | None = None,
    note: str = "",
) -> Picture:
    """Draw bytes over seconds, with a line for each limit and a dot at the peak.

    Shapes      looks: (seconds, bytes) in order; limits: {"hard limit": bytes}
    Unit        bytes, seconds
    Leaves out  beyond 280 looks, all but the highest of each stretch of time
    Raises      ValueError without a look
    """
    if not looks:
        raise ValueError("no look to draw; a program that is watched is looked at once at least")
    limits = {} if limits is None else limits
    kept = _thin(looks)
    most = max(looks, key=lambda look: look[1])
    top_bytes = max([most[1], *limits.values()]) or 1
    last = max(looks[-1][0], 0.001)

    sheet = Canvas()
    step = step_of(top_bytes, 5)
    left = max(width_of(text(size)) for size in range(0, top_bytes + 1, step)) + 10
    y = heading(sheet, title)
    if note:
        sheet.words(0, y, note, colour=GREY)
        y += 18
    base = y + 26 + HIGH
    up, across = HIGH / top_bytes, (WIDTH - left) / last
    for size in range(0, top_bytes + 1, step):
        sheet.line(left, base - size * up, WIDTH, base - size * up, "#DDDDDD")
        sheet.words(left - 8, base - size * up, text(size), "end", GREY)
    points = [(left + at * across, base - size * up) for at, size in kept]
    along = "".join(f"L{n(x)} {n(height)}" for x, height in points)
    sheet.area(f"M{n(points[0][0])} {n(base)}{along}L{n(points[-1][0])} {n(base)}Z", FILL)
    for mark in decimal_ticks(0, last, 6):
        if mark <= last:
            words = f"{mark:,.6g}"
            x = min(left + mark * across, WIDTH - width_of(words) / 2)
            sheet.words(x, base + 14, words, "middle", GREY)
    sheet.words(WIDTH, base + 34, "seconds →", "end", GREY)
    x = left + 6
    for name, size in limits.items():
        height = base - size * up
        sheet.line(left, height, WIDTH, height, LIMIT, "6 4")
        # At the left, where programs still take little; each beside the other, and below its line,
        # so that one at the top of the picture stays clear of the title.
        words = Message("{1} {2}", name, text(size))
        sheet.words(x, height + 11, words)
        x += width_of(words) + 16
    _peak(sheet, left + most[0] * across, base - most[1] * up, left, most[1])
    return sheet.picture(title, base + 46)


def _peak(sheet: Canvas, x: float, y: float, left: float, size: int) -> None:
    words = Message("peak {1}", text(size))
    half = width_of(words, bold=True) / 2
    sheet.dot(x, y)
    sheet.words(min(max(x, left + half), WIDTH - half), y - 14, words, "middle", INK, bold=True)


def _thin(looks: Sequence[tuple[float, int]]) -> list[tuple[float, int]]:
    """All of them, or the highest of each of 280 equal stretches, and the last."""
    count = len(looks)
    if count <= MOST:
        return list(looks)
    cuts = [count * i // MOST for i in range(MOST + 1)]
    found = [
        max(looks[a:b], key=lambda look: look[1]) for a, b in zip(cuts, cuts[1:], strict=False)
    ]
    return found if found[-1] == looks[-1] else [*found, looks[-1]]
