"""The address space over time: every block of the caching allocator, and what lies between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..base.message import Message
from ..units import exact, text
from .canvas import SIZE, WIDTH, Canvas, Picture, heading, ink_on, n, width_of
from .colours import GREY, INK, PAPER, colour_of, in_order
from .lifetimes import Events, Lifetimes, Stretch, lifetimes
from .ticks import step_of

HIGH, MOST = 280, 1500
EDGE = "#A6A6A6"
# A reader of the drawing who does not know the pattern still gets a pale colour.
FREE = "url(#memlab-free) #EEEEEE"
HATCH = (
    '<defs><pattern id="memlab-free" width="6" height="6" patternUnits="userSpaceOnUse" '
    'patternTransform="rotate(45)"><rect width="6" height="6" fill="#F2F2F2"/>'
    '<path d="M0 0V6" stroke="#A6A6A6" stroke-width="2"/></pattern></defs>'
)


def address_space(
    events: Events,
    terms: Mapping[Any, str] | None = None,
    *,
    capacity: int | None = None,
    expandable: bool = False,
    labels: Sequence[str] | None = None,
    start: int = 0,
    title: str = "Address space over time",
) -> Picture:
    """Draw a trace as PyTorch's caching allocator would lay it out.

    Shapes      x: the events in order, each as wide as the next; y: addresses, segment above
                segment; a rectangle is a block, from its birth to its end
                events: (kind, ident, bytes) as `memlab.terms.replay` takes them; an ident that is
                text is written on its block
                terms: ident -> term, for the colours; labels: a word for each event, such as its
                phase; start: the first event to draw
    Unit        bytes; the bold line is the top of what is reserved
    Leaves out  blocks too thin to see; beyond 1,500 blocks, those with the smallest area; the
                distance between two segments, which is not memory
    Raises      ValueError for no event, or an event that the ones before make impossible
    """
    events = list(events)
    found = lifetimes(events, capacity, expandable)
    if not 0 <= start < found.moments:
        raise ValueError(f"no event from start={start} on; the trace has {len(events)}")
    if not found.lanes:
        raise ValueError("the trace asks for no memory; there is nothing to draw")
    terms = terms or {}
    used = in_order([terms.get(life.ident, "other") for life in found.blocks])
    top = max(high for _, high in found.lanes)
    limit = capacity if capacity is not None and capacity >= top else None

    sheet = Canvas()
    sheet.parts.append(HATCH)
    step = step_of(limit or top, 5)
    left = max(width_of(text(size)) for size in range(0, (limit or top) + 1, step)) + 10
    ends = _ends(found, HIGH / (limit or top))
    right = WIDTH - max((width_of(words) + 8 for words, _ in ends), default=0)
    y = heading(sheet, title)
    place = _Place(left, right, start, found.moments, HIGH / (limit or top))
    named = _named(found.blocks, terms, place)
    written = {_words(life, terms) for life in named}
    entries = [(term, colour_of(term)) for term in used if term not in written]
    y += 6 + sheet.key(left, y + 6, [*entries, ("free in a segment", FREE)])
    place.base = base = y + 24 + HIGH
    for size in range(0, (limit or top) + 1, step):
        sheet.line(left, base - size * place.scale, right, base - size * place.scale, "#DDDDDD")
        sheet.words(left - 8, base - size * place.scale, text(size), "end", GREY)
    for life in found.reserved:
        if life.end > start:
            x, high, wide, tall = place.box(life)
            # Edges of many small segments would hide what lies in them.
            sheet.box(x, high, wide, tall, FREE, edge=EDGE if tall > 3 else "none")
    _blocks(sheet, found.blocks, terms, place)
    for life in named:
        _name(sheet, life, terms, place)
    _top(sheet, found.reserved, place)
    for words, middle in ends:
        sheet.words(right + 8, base - middle * place.scale, words, colour=GREY)
    if limit is not None:
        sheet.line(left, base - HIGH, right, base - HIGH, INK, dash="5 4")
        sheet.words(left, base - HIGH - 12, Message("limit {1}", exact(limit)), colour=GREY)
    sheet.words(WIDTH, base - HIGH - 12, _end(found), "end", INK, bold=True)
    if labels is not None:
        _labels(sheet, labels, place)
    y = base + (16 if labels is None else 36)
    sheet.words(right, y, "allocations and frees, in order →", "end", GREY)
    return sheet.picture(title, y + 12)


class _Place:
    """From moments and bytes to pixels."""

    def __init__(self, left: float, right: float, start: int, moments: int, scale: float) -> None:
        self.left, self.right, self.start, self.moments = left, right, start, moments
        self.scale, self.base = scale, 0.0
        self.wide = (right - left) / (moments - start)

    def x(self, moment: int) -> float:
        return self.left + max(moment - self.start, 0) * self.wide

    def box(self, life: Stretch) -> tuple[float, float, float, float]:
        x, high = self.x(life.start), (life.high - life.low) * self.scale
        return x, self.base - life.high * self.scale, max(self.x(life.end) - x, 0), high


def _named(blocks: list[Stretch], terms: Mapping[Any, str], place: _Place) -> list[Stretch]:
    """Blocks with room for words: those whose ident is text, else the widest of each term."""
    found: list[Stretch] = []
    best: dict[str, tuple[float, Stretch]] = {}
    for life in blocks:
        _, _, wide, high = place.box(life)
        words = _words(life, terms)
        if wide < width_of(words) + 6 or high < SIZE + 1:
            continue
        if isinstance(life.ident, str):
            found.append(life)
        elif wide * high > best.get(words, (0.0, life))[0]:
            best[words] = wide * high, life
    return found + [life for _, life in best.values()]


def _words(life: Stretch, terms: Mapping[Any, str]) -> str:
    return life.ident if isinstance(life.ident, str) else terms.get(life.ident, "other")


def _name(sheet: Canvas, life: Stretch, terms: Mapping[Any, str], place: _Place) -> None:
    x, y, wide, high = place.box(life)
    words, ink = _words(life, terms), ink_on(colour_of(terms.get(life.ident, "other")))
    if isinstance(life.ident, str):
        longer = Message("{1} {2}", words, text(life.high - life.low))
        words = longer if width_of(longer) + 6 <= wide else words
    sheet.words(x + wide / 2, y + high / 2, words, "middle", ink)


def _blocks(sheet: Canvas, blocks: list[Stretch], terms: Mapping[Any, str], place: _Place) -> None:
    """One path a colour; only what is large enough gets an edge, else edges would be all."""
    seen = [(place.box(life), life) for life in blocks if life.end > place.start]
    seen = [pair for pair in seen if pair[0][3] >= 0.3]
    seen = sorted(seen, key=lambda pair: -pair[0][2] * pair[0][3])[:MOST]
    paths: dict[tuple[str, bool], str] = {}
    for (x, y, wide, high), life in seen:
        kind = colour_of(terms.get(life.ident, "other")), wide > 4 and high > 4
        path = f"M{n(x)} {n(y)}h{n(max(wide, 0.5))}v{n(high)}h-{n(max(wide, 0.5))}z"
        paths[kind] = paths.get(kind, "") + path
    for (colour, edged), path in paths.items():
        edge = f' stroke="{PAPER}"' if edged else ""
        sheet.parts.append(f'<path d="{path}" fill="{colour}"{edge}/>')


def _top(sheet: Canvas, reserved: list[Stretch], place: _Place) -> None:
    """The bold line along the top of what is reserved."""
    path, last = "", None
    for moment in range(place.start, place.moments):
        tops = [life.high for life in reserved if life.start <= moment < life.end]
        height = n(place.base - max(tops, default=0) * place.scale)
        if height != last:
            move = (
                f"M{n(place.left)} {height}" if last is None else f"H{n(place.x(moment))}V{height}"
            )
            path, last = path + move, height
    path += f"H{n(place.right)}"
    sheet.parts.append(f'<path d="{path}" fill="none" stroke="{INK}" stroke-width="2"/>')


def _ends(found: Lifetimes, scale: float) -> list[tuple[str, float]]:
    """What stands right of the picture: the size of each segment that is there at the end."""
    kept = []
    for low, high in found.lanes:
        here = [r for r in found.reserved if r.end == found.moments and low <= r.low < high]
        size = sum(life.high - life.low for life in here)
        if size * scale >= SIZE:
            middle = (min(r.low for r in here) + max(r.high for r in here)) / 2
            kept.append((text(size), middle))
    return kept


def _end(found: Lifetimes) -> str:
    if (ended := found.replay.out_of_memory) is not None:
        return Message("out of memory: {1} asked for", text(ended.requested))
    allocator = found.replay.allocator
    sizes = text(allocator.reserved), text(allocator.allocated)
    return Message("at the end: reserved {1}, in blocks {2}", *sizes)


def _labels(sheet: Canvas, labels: Sequence[str], place: _Place) -> None:
    """Words below the axis, one for each run of equal labels that has room for it."""
    first = place.start
    for moment in range(place.start + 1, place.moments + 1):
        if moment < place.moments and labels[moment] == labels[first]:
            continue
        x, end = place.x(first), place.x(moment)
        if first > place.start and labels[first]:
            sheet.line(x, place.base - HIGH, x, place.base + 6, GREY, "2 4")
        if labels[first] and width_of(labels[first]) + 2 <= end - x:
            sheet.words((x + end) / 2, place.base + 14, labels[first], "middle")
        first = moment
