"""What each program's loop holds beyond the model's own step: one row a loop, on one scale."""

from collections.abc import Mapping

from ..units import text
from .canvas import WIDTH, Canvas, Picture, heading, ink_on, room_of, width_of, wrap
from .colours import COLOURS, GREY, INK, PAPER

HIGH, GAP, LINE = 34, 16, 17
Piece = tuple[str, str, int]  # what it is, the term whose colour it has, bytes


def beyond_the_model(
    shared: int,
    loops: Mapping[str, tuple[list[Piece], str]],
    title: str = "What each loop holds beyond the model",
) -> Picture:
    """Draw what all loops hold as one band that is cut short, and below it what each adds.

    Shapes      loops: name -> its pieces, (words, term, bytes), and what gives them back
                The pieces of all loops have one scale; the band has none
    Unit        bytes
    Raises      ValueError for no loop, or where no loop adds anything
    """
    totals = {name: sum(size for *_, size in pieces) for name, (pieces, _) in loops.items()}
    if not any(totals.values()):
        raise ValueError("no loop adds anything: {'a loop': ([('logits', 'logits', 4)], 'a flag')}")
    sheet = Canvas()
    left = max(width_of(name, bold=True) for name in loops) + 12
    ends = max(width_of(f"+ {text(size)}", bold=True) for size in totals.values()) + 10
    scale = (WIDTH - left - ends) / max(totals.values())
    y = _band(sheet, heading(sheet, title) + 4, shared)
    y += 10 + sheet.key(left, y, _unnamed(loops, scale))
    for name, (pieces, flag) in loops.items():
        sheet.words(0, y + HIGH / 2, name, bold=True)
        x = left
        for words, term, size in pieces:
            wide, fill = size * scale, COLOURS[term]
            sheet.box(x, y, wide, HIGH, fill)
            if _fits(words, wide):
                sheet.words(x + wide / 2, y + HIGH / 2, words, "middle", ink_on(fill))
            x += wide
        sheet.words(x + 8, y + HIGH / 2, f"+ {text(totals[name])}", bold=True)
        y += HIGH + 12
        for line in wrap(flag, WIDTH - left):
            sheet.words(left, y, line, colour=GREY)
            y += LINE
        y += GAP - 6
    return sheet.picture(title, y - 4)


def _fits(words: str, wide: float) -> bool:
    return width_of(words) + 8 <= wide


def _unnamed(loops: Mapping[str, tuple[list[Piece], str]], scale: float) -> list[tuple[str, str]]:
    """Words and colour of each piece that is too narrow for its words, once."""
    every = [piece for pieces, _ in loops.values() for piece in pieces]
    narrow = {words: COLOURS[term] for words, term, size in every if not _fits(words, size * scale)}
    return list(narrow.items())


def _band(sheet: Canvas, y: float, shared: int) -> float:
    """The part that every loop has: too long for the scale of the rest, so it is cut."""
    sheet.box(0, y, WIDTH, HIGH, COLOURS["inputs"], edge=GREY)
    cut = WIDTH * 0.82
    for x in (cut, cut + 9):
        sheet.line(x, y + HIGH + 3, x + 9, y - 3, INK)
    patch = f"M{cut:.0f} {y + HIGH + 3:.0f}L{cut + 9:.0f} {y - 3:.0f}"
    patch += f"L{cut + 18:.0f} {y - 3:.0f}L{cut + 9:.0f} {y + HIGH + 3:.0f}Z"
    sheet.area(patch, PAPER)
    words = "the model's own, in every loop:"
    sheet.words(10, y + HIGH / 2, words)
    place = 10 + max(width_of(words) + 8, room_of(words) + 2.5)
    sheet.words(place, y + HIGH / 2, text(shared), bold=True)
    return y + HIGH + 22
