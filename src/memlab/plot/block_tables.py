"""The pool of a serving engine as a picture: a table for each sequence, and the blocks it names."""

from collections.abc import Mapping, Sequence

from ..base.messages import Localized
from .canvas import WIDTH, Canvas, Picture, heading
from .colours import COLOURS, GREY, PAPER, ink_on

CELL, HIGH, LEFT, GAP = 34, 26, 150, 12  # of a box, of a row, where tables begin, between rows
OWN, SHARED, NULL = COLOURS["KV cache"], COLOURS["embedding"], COLOURS["inputs"]


def block_tables(tables: Mapping[str, Sequence[int]], blocks: int, title: str = "") -> Picture:
    """Draw each sequence's table over the pool that its numbers point into.

    Shapes      tables: the blocks of each sequence, in the order of its tokens, numbers from 1 to
                blocks - 1; block 0 is nobody's
    Raises      ValueError for no table, a number that the pool does not have, and for more blocks
                than one row of the picture has room for
    """
    if not tables:
        raise ValueError("no tables to draw: block_tables({'A': [1, 2]}, 4)")
    wide = WIDTH / max(1, blocks)
    if wide < CELL:
        raise ValueError(f"blocks={blocks}; the picture has room for {WIDTH // CELL}")
    users: dict[int, int] = {}
    for name, table in tables.items():
        for number in table:
            if not 1 <= number < blocks:
                raise ValueError(f"{name} names block {number}; the pool has 1 to {blocks - 1}")
            users[number] = users.get(number, 0) + 1
    sheet = Canvas()
    y = heading(sheet, title) + HIGH / 2
    pool = y + len(tables) * (HIGH + GAP) + 52
    for name, table in tables.items():
        sheet.words(0, y, name)
        for place, number in enumerate(table):
            x = LEFT + place * CELL
            target = (number + 0.5) * wide
            sheet.line(x + CELL / 2, y + HIGH / 2, target, pool - HIGH / 2)
            _box(sheet, x, y, CELL, number, SHARED if users[number] > 1 else OWN)
        y += HIGH + GAP
    for number in range(blocks):
        held = users.get(number, 0)
        fill = NULL if number == 0 else SHARED if held > 1 else OWN if held else PAPER
        _box(sheet, number * wide, pool, wide, number, fill)
    keys = [("one sequence's", OWN), ("shared", SHARED), ("set aside", NULL), ("free", PAPER)]
    return sheet.picture(title or "Block tables", pool + 24 + sheet.key(0, pool + 34, keys))


def _box(sheet: Canvas, x: float, middle: float, wide: float, number: int, fill: str) -> None:
    sheet.box(x, middle - HIGH / 2, wide, HIGH, fill, edge=GREY)
    sheet.words(x + wide / 2, middle, Localized(str(number)), "middle", colour=ink_on(fill))
