"""Matrices to scale, a row for each way to build a layer: what is large is large to look at."""

from collections.abc import Mapping, Sequence

from ..base.message import Listed, Message
from ..base.messages import number
from .canvas import SIZE, WIDTH, Canvas, Picture, heading, width_of, wrap
from .colours import COLOURS, GREY

TALL = 180  # pixels of the longest side
GAP, LEFT = 12, 130


def matrices(rows: Mapping[str, Sequence[tuple[str, int, int]]], title: str = "") -> Picture:
    """Draw each matrix as a box as wide as its inputs and as high as its outputs.

    Shapes      rows: {label: [(name, outputs, inputs), ...]}; one scale for all of them
    Unit        parameters: the area of a box; each row ends in the sum of its own
    Raises      ValueError for no matrix at all, for a side of 0, and for a row that is too wide
    """
    sides = [side for row in rows.values() for _, *both in row for side in both]
    if not sides:
        raise ValueError("no matrix to draw; name at least one: matrices({'MHA': [('q', 8, 8)]})")
    if min(sides) < 1:
        raise ValueError(f"a matrix has a side of {min(sides)}; at least 1 is needed")
    scale = TALL / max(sides)
    sheet = Canvas()
    y = heading(sheet, title)
    for label, row in rows.items():
        high = max(outputs for _, outputs, _ in row) * scale
        count = sum(outputs * inputs for _, outputs, inputs in row)
        lines = [*wrap(label, LEFT - GAP, bold=True), number(count)]
        for i, words in enumerate(lines):
            place = y + high / 2 + (SIZE + 6) * (i - (len(lines) - 1) / 2)
            last = i == len(lines) - 1
            sheet.words(0, place, words, bold=not last, colour=GREY if last else "#1A1A1A")
        x: float = LEFT
        for name, outputs, inputs in row:
            wide, room = inputs * scale, max(inputs * scale, width_of(name))
            if x + room > WIDTH:
                raise ValueError(f"{label}: {name} has no room; fewer matrices fit in a row")
            start = x + (room - wide) / 2
            sheet.box(
                start,
                y + (high - outputs * scale) / 2,
                max(wide, 2),
                max(outputs * scale, 2),
                COLOURS["attention"],
                edge="none",
            )
            sheet.words(x + room / 2, y + high + SIZE, name, "middle")
            x += room + GAP
        y += max(high, (SIZE + 6) * len(lines)) + 2 * SIZE + GAP
    return sheet.picture(title or Message("Matrices of {1}", Listed("; ", rows)), y)
