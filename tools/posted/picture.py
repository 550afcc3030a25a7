"""The picture of the page: predicted against posted, a dot a counted reading, in powers of two."""

from math import log2

from memlab.plot.canvas import WIDTH, Canvas, heading, n, width_of
from memlab.plot.colours import GREY, INK
from memlab.units import text

from .readings import ROOT
from .stored import stored

PATH = ROOT / "book" / "_static" / "posted.svg"
TITLE = "Predicted against posted bytes, one dot a reading"
# Okabe and Ito's colours and two more, one a group of sources that has an answer.
SOURCES = {
    "optimum": "#E69F00",
    "qwen3": "#0072B2",
    "peft": "#009E73",
    "megatron": "#D55E00",
    "litgpt": "#CC79A7",
    "torchtune": "#1A1A1A",
    "vllm": "#56B4E9",
    "torchtitan": "#8C510A",
    "gpjt": "#5E3C99",
}
GROUPS = {"litgpt-tables": "litgpt", "torchao": "torchtitan"}  # a source in another one's colour
LOW, HIGH = 28, 37  # powers of two: 256 MiB to 128 GiB
BAND = 1.05  # the tolerance above which a miss has its reason


def picture():
    """The SVG as text."""
    sheet = Canvas()
    top = heading(sheet, TITLE) + 4
    y = top + sheet.key(0, top + 8, list(SOURCES.items())) + 14
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
    wide = log2(BAND) * scale
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
    for name, colour in SOURCES.items():
        for x, height in sorted(_dots(name, left, base, scale)):
            sheet.parts.append(
                f'<circle cx="{n(x)}" cy="{n(height)}" r="3.5" fill="{colour}" '
                'fill-opacity="0.6" stroke="none"/>'
            )
    sheet.words(left + 4, y + 8, "predicted ↑", colour=INK)
    sheet.words(left + side, base - 12, "posted →", "end")
    sheet.words(left + side, base - 34, f"grey: ±{BAND - 1:.0%}", "end", GREY)
    return sheet.picture(TITLE, base + 30).svg


def _dots(name, left, base, scale):
    """Where the dots of a source lie; two on one tenth of a pixel are one."""
    return {
        (
            round(left + (log2(a.reading.bytes) - LOW) * scale, 1),
            round(base - (log2(a.bytes) - LOW) * scale, 1),
        )
        for a in stored()
        if a.counted and GROUPS.get(a.reading.source, a.reading.source) == name
    }
