"""A paged KV cache as a picture: the page table of each conversation, and the pool below."""

from collections.abc import Mapping, Sequence

from ..base.messages import Localized
from .canvas import WIDTH, Canvas, Picture, heading, width_of
from .colours import COLOURS, GREY, PAPER

HIGH, APART, BETWEEN = 30, 20, 76  # of a page, between two tables, from the tables to the pool
NARROW = 34  # a page with room for its number
FILLS = (COLOURS["KV cache"], COLOURS["activations"], COLOURS["gradients"], COLOURS["inputs"])


def page_tables(
    tables: Mapping[str, Sequence[int]],
    lengths: Mapping[str, int],
    pages: int,
    block: int = 16,
    title: str = "",
) -> Picture:
    """Draw each conversation's pages in the order of its tokens, and below them the pool.

    Shapes      tables: the pages of each conversation, numbers from 0 to pages - 1; lengths: its
                tokens; block: tokens that a page has room for
    Raises      ValueError for no table or more than four, a page that the pool does not have or
                that two conversations name, a length that its pages cannot hold, too many pages
    """
    _check(tables, lengths, pages, block)
    sheet = Canvas()
    top = heading(sheet, title) + 24
    wide = min(WIDTH / pages, (WIDTH - APART * (len(tables) - 1)) / sum(map(len, tables.values())))
    pool, x, inside = top + HIGH + BETWEEN, 0.0, {}
    for (name, table), fill in zip(tables.items(), FILLS, strict=False):
        sheet.words(x, top - 12, f"{name}: {lengths[name]} tokens")
        for place, number in enumerate(table):
            share = min(block, lengths[name] - place * block) / block
            inside[number] = f"{name}{place}", share, fill
            sheet.line(x + wide / 2, top + HIGH, (number + 0.5) * WIDTH / pages, pool)
            _page(sheet, x, top, wide, share, fill, f"{number}")
            x += wide
        x += APART
    for number in range(pages):
        label, share, fill = inside.get(number, ("free", 0, PAPER))
        left = number * WIDTH / pages
        _page(sheet, left, pool, WIDTH / pages, share, fill, label)
        middle = left + WIDTH / pages / 2
        sheet.words(middle, pool + HIGH + 12, Localized(f"{number}"), "middle", GREY)
    return sheet.picture(title or "Page tables", pool + HIGH + 24)


def _page(
    sheet: Canvas, x: float, y: float, wide: float, share: float, fill: str, label: str
) -> None:
    """A page, filled from the left as far as it has tokens."""
    sheet.box(x, y, wide, HIGH, PAPER, edge=GREY)
    if share:
        sheet.box(x, y, wide * share, HIGH, fill, edge=GREY)
    room = wide * share if wide * share >= width_of(label) + 8 else wide
    if room >= width_of(label):
        sheet.words(x + room / 2, y + HIGH / 2, label, "middle")


def _check(
    tables: Mapping[str, Sequence[int]], lengths: Mapping[str, int], pages: int, block: int
) -> None:
    if not 1 <= len(tables) <= len(FILLS):
        raise ValueError(
            f"{len(tables)} tables to draw; the picture has room for 1 to {len(FILLS)}"
        )
    if not 1 <= pages <= WIDTH // NARROW:
        raise ValueError(f"pages={pages}; the picture has room for 1 to {WIDTH // NARROW}")
    seen: set[int] = set()
    for name, table in tables.items():
        for number in table:
            if not 0 <= number < pages or number in seen:
                raise ValueError(f"{name} names page {number}: taken, or not one of {pages}")
            seen.add(number)
        if not table or -(-lengths[name] // block) != len(table):
            raise ValueError(f"{name} has {lengths[name]} tokens in {len(table)} pages of {block}")
