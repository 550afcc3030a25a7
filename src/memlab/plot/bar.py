"""The ledger bar: one horizontal bar per column, or per ledger, stacked by term."""

from collections.abc import Mapping

from ..base.message import Message
from ..devices import device
from ..ledger import Ledger
from ..terms.context import CONTEXT
from ..units import exact, parse, text
from .canvas import WIDTH, Canvas, Picture, heading, ink_on, room_of, width_of, wrap
from .colours import INK, PAPER, colour_of, in_order
from .ticks import ticks

HIGH, GAP = 44, 14


def ledger_bar(
    ledger: Ledger | Mapping[str, Ledger],
    *,
    limit: int | str | None = None,
    title: str | None = None,
    column: str | None = None,
) -> Picture:
    """Draw a ledger: a bar for each column it has, or one for each of several ledgers.

    Shapes      several ledgers come as {label: ledger}; of each, `column` is drawn, by default the
                first that it has
    Unit        bytes; limit is a card ("H100 80GB": its usable bytes less a CUDA context), a size
                ("24 GiB") or a number of bytes
    Leaves out  figures that are zero or missing
    Raises      ValueError for a ledger without figures, for a negative figure (a difference is no
                amount) and for a limit that is neither a size nor a card
    """
    bars, notes = _bars(ledger, column)
    for label, figures in bars.items():
        for term, size in figures.items():
            if size < 0:
                raise ValueError(f"{label}: {term}={size} is negative; a bar shows amounts")
    if not any(sum(figures.values()) for figures in bars.values()):
        raise ValueError("the ledger has no figure above zero to draw")
    words = title if title is not None else getattr(ledger, "title", "")
    line, named = line_of(limit)

    ends = {label: [text(sum(figures.values())), *notes[label]] for label, figures in bars.items()}
    sheet = Canvas()
    labels = {label: wrap(label, 130) for label in bars}
    rows = [part for parts in labels.values() for part in parts]
    # Ideographs are as wide as they are high: on a phone those of a row are wider than `width_of`.
    left = max(max(map(width_of, rows)) + 10, max(map(room_of, rows)) + 2)
    room = WIDTH - left
    scale = min(
        (room - 14 - max(map(width_of, ends[label]))) / sum(figures.values())
        for label, figures in bars.items()
        if sum(figures.values())
    )
    if line is not None:
        scale = min(scale, (room - 2) / line)

    y = heading(sheet, words)
    if entries := _key(bars, scale, line):
        y += 6 + sheet.key(left, y + 6, entries)
    if line is not None:
        note = Message("limit {1}", named)
        x = left + line * scale
        at = "end" if x + width_of(note) / 2 > WIDTH else "middle"
        sheet.words(WIDTH if at == "end" else x, y + 6, note, at)
        y += 18
    top = y
    for label, figures in bars.items():
        for i, part in enumerate(labels[label]):
            sheet.words(0, y + HIGH / 2 + 18 * (i - (len(labels[label]) - 1) / 2), part)
        _draw(sheet, left, y, figures, scale, line)
        y += HIGH + GAP
    y += 4 - GAP
    y += ticks(sheet, left, y, WIDTH, scale)
    if line is not None:
        sheet.line(x, top - 4, x, top + len(bars) * (HIGH + GAP) - GAP + 4, INK, dash="5 4")
    for i, (label, figures) in enumerate(bars.items()):
        for j, part in enumerate(ends[label]):
            middle = top + i * (HIGH + GAP) + HIGH / 2 + 18 * (j - (len(ends[label]) - 1) / 2)
            end = left + sum(figures.values()) * scale + 8
            # On a plain patch, so that the limit's line does not run through the figures.
            sheet.box(end - 3, middle - 9, width_of(part, j == 0) + 2, 18, PAPER, edge="none")
            sheet.words(end, middle, part, bold=j == 0)
    return sheet.picture(words or "Ledger", y)


def line_of(limit: int | str | None) -> tuple[int | None, str]:
    """Where the line of a limit stands, and its words."""
    if limit is None:
        return None, ""
    if isinstance(limit, str) and limit.strip()[:1].isalpha():
        card = device(limit)
        free = card.limit - CONTEXT
        return free, Message("{1} ({2})", text(free), card.name)
    line = parse(limit) if isinstance(limit, str) else limit
    if line <= 0:
        raise ValueError(f"limit={limit!r} is not a size above zero")
    if isinstance(limit, str):
        return line, limit
    return line, exact(line) if len(exact(line)) <= len("1,024.5 GiB") else text(line)


def _bars(ledger, column) -> tuple[dict[str, dict[str, int]], dict[str, list[str]]]:
    """Each bar's figures by term, stacked in order, and what stands at its end below its total."""
    if isinstance(ledger, Ledger):
        names = (column,) if column else ledger.columns
        sources = {name: (ledger, name) for name in names}
    else:
        sources = {
            label: (one, column or (*one.columns, "derived")[0]) for label, one in ledger.items()
        }
    found = {
        label: {row.term: getattr(row, name) for row in one.rows}
        for label, (one, name) in sources.items()
    }
    order = in_order([term for figures in found.values() for term in figures])
    bars: dict[str, dict[str, int]] = {}
    notes: dict[str, list[str]] = {}
    first: dict[str, int | None] | None = None
    for label, figures in found.items():
        bars[label] = {term: figures[term] for term in order if figures.get(term)}
        missing = [term for term in figures if figures[term] is None]
        # A figure that nobody has is not nothing: without it the totals cannot be compared.
        if missing:
            several = Message("{1} terms", len(missing))
            terms = missing[0] if len(missing) == 1 else several
            notes[label] = [Message("without {1}", terms)]
        else:
            notes[label] = [_gap(figures, first)] if first and None not in first.values() else []
        first = first or figures
    return bars, notes


def _gap(figures, first) -> str:
    gap = sum(figures.values()) - sum(first.values())
    return f"+{text(gap)}" if gap >= 0 else text(gap).replace("-", "−")


def _fits(term: str, size: int, wide: float) -> bool:
    return max(width_of(term), width_of(text(size))) + 8 <= wide


def _wider_side(x: float, wide: float, cut: float | None) -> tuple[float, float]:
    """The part of a segment that the limit's line leaves whole."""
    if cut is None or not x < cut < x + wide:
        return x, wide
    return (x, cut - x) if cut - x > x + wide - cut else (cut, x + wide - cut)


def _segments(figures: dict[str, int], scale: float, line: int | None):
    """(term, size, x, width, x and width of the room for its words) for each segment."""
    x = 0.0
    for term, size in figures.items():
        wide = size * scale
        cut = None if line is None else line * scale
        yield term, size, x, wide, *_wider_side(x, wide, cut)
        x += wide


def _draw(sheet: Canvas, left: float, y: float, figures, scale: float, line: int | None) -> None:
    for term, size, x, wide, start, room in _segments(figures, scale, line):
        sheet.box(left + x, y, wide, HIGH, colour_of(term))
        if _fits(term, size, room):
            middle, ink = left + start + room / 2, ink_on(colour_of(term))
            sheet.words(middle, y + HIGH / 2 - 9, term, "middle", ink)
            sheet.words(middle, y + HIGH / 2 + 9, text(size), "middle", ink)


def _key(bars, scale: float, line: int | None) -> list[tuple[str, str]]:
    """Words and colour of every term that no bar has room to name, with its size if all agree."""
    named: set[str] = set()
    sizes: dict[str, set[int]] = {}
    for figures in bars.values():
        for term, size, _, _, _, room in _segments(figures, scale, line):
            sizes.setdefault(term, set()).add(size)
            if _fits(term, size, room):
                named.add(term)
    left_out = [term for term in in_order(list(sizes)) if term not in named]
    return [
        (Message("{1} {2}", term, text(min(sizes[term]))), colour_of(term))
        if len(sizes[term]) == 1
        else (term, colour_of(term))
        for term in left_out
    ]
