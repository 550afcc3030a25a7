"""Who holds what, and when: a strip for each tensor, filled where its bytes are in memory."""

from collections.abc import Mapping, Sequence

from .canvas import WIDTH, Canvas, Picture, heading, wrap
from .colours import GREY, PAPER, colour_of

Span = tuple[float, float] | None
Strips = Mapping[str, Sequence[Span]]
HIGH, GAP, LEFT, LINE, BETWEEN = 14, 4, 92, 18, 14


def who_holds(
    held: Mapping[str, Sequence[Strips]], moments: Sequence[str], title: str = ""
) -> Picture:
    """Draw rows of strips, a column for each moment.

    Shapes      held: for each row (a rank, or a way of dividing) one mapping a moment, from a term
                to its pieces (layers, or pieces of a text); a piece is (from, to), the part of it
                that is in memory between 0 and 1, or None where nothing of it is
    Raises      ValueError for no row, a row without a strip for each moment, and a part outside
                0 to 1
    """
    if not held or not moments:
        raise ValueError("nothing to draw: who_holds({'rank 0': [{'weights': [(0, 1)]}]}, ['now'])")
    terms: dict[str, str] = {}
    for name, cells in held.items():
        if len(cells) != len(moments):
            raise ValueError(f"{name} has {len(cells)} cells for {len(moments)} moments")
        for cell in cells:
            terms |= {term: colour_of(term) for term in cell}
            for part in (part for strip in cell.values() for part in strip if part):
                if not 0 <= part[0] < part[1] <= 1:
                    raise ValueError(f"{name} holds the part {part}; it lies between 0 and 1")
    sheet = Canvas()
    y = heading(sheet, title) + LINE / 2
    wide = (WIDTH - LEFT) / len(moments)
    heads = [wrap(moment, wide - 8, bold=True) for moment in moments]
    for column, lines in enumerate(heads):
        for i, line in enumerate(lines):
            sheet.words(LEFT + column * wide, y + LINE * i, line, bold=True)
    y += LINE * max(map(len, heads))
    for name, cells in held.items():
        tall = max(len(cell) for cell in cells) * (HIGH + GAP) - GAP
        lines = wrap(name, LEFT - 8)
        for i, line in enumerate(lines):
            sheet.words(0, y + tall / 2 + LINE * (i - (len(lines) - 1) / 2), line)
        for column, cell in enumerate(cells):
            for row, (term, strip) in enumerate(cell.items()):
                top = y + row * (HIGH + GAP)
                _strip(sheet, LEFT + column * wide, top, wide - 12, strip, terms[term])
        y += max(tall, LINE * len(lines)) + BETWEEN
    keys = [*terms.items(), ("not here", PAPER)]
    return sheet.picture(title or "Who holds what", y + sheet.key(0, y + 4, keys))


def _strip(
    sheet: Canvas, x: float, y: float, wide: float, parts: Sequence[Span], colour: str
) -> None:
    """One tensor: a box for each piece, filled where it is in memory."""
    each = wide / max(1, len(parts))
    for number, part in enumerate(parts):
        left = x + number * each
        sheet.box(left, y, each - 2, HIGH, PAPER, edge=GREY)
        if part:
            start, stop = part
            sheet.box(left + start * (each - 2), y, (stop - start) * (each - 2), HIGH, colour, GREY)
