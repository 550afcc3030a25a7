"""A decision as a picture: questions from top to bottom, and beside each what a yes leads to."""

from collections.abc import Sequence

from .canvas import WIDTH, Canvas, Picture, heading, width_of, wrap
from .colours import COLOURS, GREY, INK, PAPER

LEFT, BETWEEN, LINE, PAD, GAP = 270, 50, 19, 9, 26


def decision(steps: Sequence[tuple[str, str]], end: str, title: str = "") -> Picture:
    """Draw each question in a box, its answer to the right of a yes; a no leads to the next one.

    Shapes      steps: (question, what to do) from the first to the last; end: where no question
                was answered with yes
    Raises      ValueError for no question
    """
    if not steps:
        raise ValueError("no question to draw; a decision has at least one")
    sheet = Canvas()
    y = heading(sheet, title)
    beside = LEFT + BETWEEN
    for number, (question, answer) in enumerate(steps):
        asked, told = wrap(question, LEFT - 2 * PAD), wrap(answer, WIDTH - beside - 2 * PAD)
        high = LINE * max(len(asked), len(told)) + 2 * PAD
        if number:
            sheet.line(LEFT / 2, y - GAP, LEFT / 2, y)
            sheet.words(LEFT / 2 + 8, y - GAP / 2, "no", colour=GREY)
        _box(sheet, 0, y, LEFT, high, asked)
        _box(sheet, beside, y, WIDTH - beside, high, told, edge=COLOURS["weights"])
        sheet.line(LEFT, y + high / 2, beside, y + high / 2)
        sheet.words(LEFT + BETWEEN / 2, y + high / 2 - 10, "yes", "middle", colour=GREY)
        y += high + GAP
    sheet.line(LEFT / 2, y - GAP, LEFT / 2, y)
    sheet.words(LEFT / 2 + 8, y - GAP / 2, "no", colour=GREY)
    told = wrap(end, WIDTH - 2 * PAD)
    wide = max(LEFT, max(width_of(line) for line in told) + 2 * PAD)
    high = LINE * len(told) + 2 * PAD
    _box(sheet, 0, y, wide, high, told)
    return sheet.picture(title or "A decision", y + high)


def _box(
    sheet: Canvas,
    x: float,
    y: float,
    wide: float,
    high: float,
    lines: list[str],
    edge: str = GREY,
) -> None:
    sheet.box(x, y, wide, high, PAPER, edge=edge)
    top = y + (high - LINE * (len(lines) - 1)) / 2
    for number, line in enumerate(lines):
        sheet.words(x + PAD, top + LINE * number, line, colour=INK)
