"""What a technique changes, each as a multiple of what was there before."""

from collections.abc import Mapping

from .canvas import WIDTH, Canvas, Picture, heading, width_of, wrap
from .colours import GREY, INK

HIGH, GAP = 22, 12
# Less than before is blue, more is vermilion: every kind of colour vision keeps these apart.
LESS, MORE = "#0072B2", "#D55E00"


def ratios(figures: Mapping[str, float], *, title: str = "", before: str = "before") -> Picture:
    """Draw a bar for each figure, from the line at 1 to the left (less) or the right (more).

    Shapes      figures: {what is compared: after / before}, such as {"peak": 0.41, "time": 1.3}
    Unit        multiples; "0.41×" is 41 per cent of before
    Raises      ValueError for no figure, a negative one or one that is not a number
    """
    if not figures:
        raise ValueError("no figure to draw; name at least one, such as {'peak': 0.41}")
    for name, value in figures.items():
        if not 0 <= value < float("inf"):
            raise ValueError(f"{name}={value!r} is not a ratio: a number from 0 up is needed")
    sheet = Canvas()
    y = heading(sheet, title)
    labels = {name: wrap(name, 190) for name in figures}
    left = max(width_of(line) for lines in labels.values() for line in lines) + 12
    most = max(1.0, *figures.values())
    scale = (WIDTH - left - 70) / most
    one = left + scale
    sheet.words(min(one, WIDTH - width_of(before) / 2), y + 6, before, "middle", GREY)
    y += 18
    top = y
    for name, value in figures.items():
        high = max(HIGH, 18 * len(labels[name]))
        middle = y + high / 2
        for i, line in enumerate(labels[name]):
            sheet.words(0, middle + 18 * (i - (len(labels[name]) - 1) / 2), line)
        start, end = sorted((one, left + value * scale))
        if end - start >= 0.5:
            colour = LESS if value < 1 else MORE
            sheet.box(start, middle - HIGH / 2, end - start, HIGH, colour)
        sheet.words(max(end, one) + 8, middle, f"{value:.2f}×", bold=True)
        y += high + GAP
    sheet.line(one, top - 4, one, y - GAP + 4, INK)
    return sheet.picture(title or "After, as a multiple of before", y)
