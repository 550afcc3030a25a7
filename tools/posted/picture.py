"""The picture of the page: what one command said against what was published, a dot for each.

Both in powers of two; sources that nobody had worked on lie above the others.
"""

from math import log2

from memlab.plot.canvas import WIDTH, Canvas, heading, n, width_of
from memlab.plot.colours import GREY, INK
from memlab.units import text

from .page import NEAR
from .readings import ROOT, commands

PATH = ROOT / "book" / "_static" / "posted.svg"
TITLE = "memlab's figures against the published ones, one dot per measurement"
GROUPS = {"sources held out": "#D55E00", "sources worked on": "#56B4E9"}
LOW, HIGH = 27, 38  # powers of two: 128 MiB to 256 GiB


def picture():
    """The SVG as text."""
    sheet = Canvas()
    top = heading(sheet, TITLE) + 4
    y = top + sheet.key(0, top + 8, list(GROUPS.items())) + 14
    left, side = width_of("128 GiB") + 10, WIDTH - width_of("128 GiB") - 40
    base, scale = y + side, side / (HIGH - LOW)

    def place(power):
        return left + (power - LOW) * scale, base - (power - LOW) * scale

    for power in range(LOW, HIGH + 1):
        x, height = place(power)
        sheet.line(left, height, left + side, height, "#DDDDDD")
        sheet.line(x, y, x, base, "#DDDDDD")
        sheet.words(left - 6, height, text(2**power), "end", GREY)
        if power % 2:
            sheet.words(x, base + 16, text(2**power), "middle", GREY)
    wide = log2(1 + NEAR) * scale
    (x1, y1), (x2, y2) = place(LOW), place(HIGH)
    corners = (
        (x1, y1),
        (x1, y1 - wide),
        (x2 - wide, y2),
        (x2, y2),
        (x2, y2 + wide),
        (x1 + wide, y1),
    )
    sheet.area("M" + "L".join(f"{n(a)} {n(b)}" for a, b in corners) + "Z", "#E8E8E8")
    sheet.line(x1, y1, x2, y2, GREY)
    for found, colour in reversed([*zip(commands(), GROUPS.values(), strict=True)]):
        for x, height in sorted(_dots(found, left, base, scale)):
            sheet.parts.append(
                f'<circle cx="{n(x)}" cy="{n(height)}" r="3.5" fill="{colour}" '
                'fill-opacity="0.7" stroke="none"/>'
            )
    sheet.words(left + 4, y + 8, "memlab ↑", colour=INK)
    sheet.words(left + side, base - 12, "published →", "end")
    sheet.words(left + side, base - 34, f"grey: ±{NEAR:.0%}", "end", GREY)
    return sheet.picture(TITLE, base + 30).svg


def _dots(found, left, base, scale):
    """Where the dots lie; two on one tenth of a pixel are one."""
    return {
        (
            round(left + (log2(a.reading.bytes) - LOW) * scale, 1),
            round(base - (log2(a.bytes) - LOW) * scale, 1),
        )
        for a in found
        if a.counted
    }
