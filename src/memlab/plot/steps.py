"""The step timeline: bytes over the events of one step, stacked by category, the peak marked."""

from typing import Any

from ..base.message import Message
from ..units import text
from .bar import line_of
from .canvas import SIZE, WIDTH, Canvas, Picture, heading, ink_on, n, width_of
from .colours import GREY, INK, PAPER, colour_of, in_order
from .ticks import step_of

HIGH, SAMPLES = 260, 150


def timeline(
    tracker: Any,
    *,
    start: int = 0,
    title: str = "Bytes over one step",
    hills: bool = False,
    limit: str | None = None,
) -> Picture:
    """Draw what a `memlab.measure.Tracker` saw.

    Shapes      x: its events in order, each as wide as the next; y: bytes, stacked by category
                start: index of the first event to draw, such as where the second step began
                hills: mark the highest moment of each phase, and not only the peak
                limit: a card, whose usable bytes less a CUDA context are a dashed line
    Unit        bytes
    Leaves out  beyond 150 events, all but the highest of each stretch; the peak is never left out
    Raises      ValueError for a tracker that saw nothing
    """
    events = list(tracker.timeline)[start:]
    if not events:
        raise ValueError(f"the tracker saw no event from {start} on; run the step in its block")
    kept = _sample([event.total for event in events])
    highest = _highest(events)
    if hills:
        kept = sorted({*kept, *highest.values()})
    layers = [tracker.contents(at=events[i].index) for i in kept]
    terms = in_order([term for layer in layers for term in layer])
    terms = [term for term in terms if any(layer.get(term) for layer in layers)]
    totals = [sum(layer.values()) for layer in layers]
    line, card = (None, "") if limit is None else line_of(limit)
    top_bytes = max(*totals, line or 1)

    sheet = Canvas()
    step = step_of(top_bytes, 5)
    left = max(width_of(text(size)) for size in range(0, top_bytes + 1, step)) + 10
    scale = HIGH / top_bytes
    wide = (WIDTH - left) / len(kept)
    floor, spans = [0] * len(kept), {}
    for term in terms:
        ceiling = [low + layer.get(term, 0) for low, layer in zip(floor, layers, strict=True)]
        spans[term] = (floor, ceiling)
        floor = ceiling
    phases = [events[i].phase for i in kept]
    cuts = [i for i in range(len(kept)) if i == 0 or phases[i] != phases[i - 1]] + [len(kept)]
    labels = {term: _place(term, *spans[term], set(cuts[1:-1]), scale, wide) for term in terms}

    y = heading(sheet, title)
    if entries := [(term, colour_of(term)) for term in terms if labels[term] is None]:
        y += 6 + sheet.key(left, y + 6, entries)
    if line is not None:  # beside the key: on the line itself it would lie across the slopes
        sheet.line(left, y + 6, left + 28, y + 6, INK, "5 4")
        sheet.words(left + 36, y + 6, Message("limit {1}", card))
        y += 20
    base = y + 24 + HIGH
    for size in range(0, top_bytes + 1, step):
        sheet.line(left, base - size * scale, WIDTH, base - size * scale, "#DDDDDD")
        sheet.words(left - 8, base - size * scale, text(size), "end", GREY)
    for term, (low, high) in spans.items():
        bottom, top = ([base - size * scale for size in edge] for edge in (low, high))
        sheet.area(outline(bottom, top, left, wide), colour_of(term))
    for term, place in labels.items():
        if place is not None:
            x, height = place
            sheet.words(left + x, base - height, term, "middle", ink_on(colour_of(term)))
    _phases(sheet, left, base, wide, cuts, phases)
    if line is not None:
        sheet.line(left, base - line * scale, WIDTH, base - line * scale, INK, "5 4")
    _peak(sheet, left, base, wide, scale, totals, phases, line is not None)
    if hills:
        del highest[phases[totals.index(max(totals))]]
        for phase, at in highest.items():
            _hill(sheet, left, base, wide, scale, totals, kept.index(at), phase)
    sheet.words(WIDTH, base + 36, "allocations and frees, in order →", "end", GREY)
    return sheet.picture(title, base + 48)


def _highest(events) -> dict[str, int]:
    """Of each phase but the last slope, zero_grad, the first of its highest moments."""
    found: dict[str, int] = {}
    for i, event in enumerate(events):
        if event.phase not in found or event.total > events[found[event.phase]].total:
            found[event.phase] = i
    found.pop("zero_grad", None)
    return found


def _sample(totals: list[int]) -> list[int]:
    """Indices to draw: all of them, or the highest of each of 150 equal stretches."""
    count = len(totals)
    if count <= SAMPLES:
        return list(range(count))
    cuts = [count * i // SAMPLES for i in range(SAMPLES + 1)]
    return [max(range(a, b), key=totals.__getitem__) for a, b in zip(cuts, cuts[1:], strict=False)]


def outline(low: list[float], high: list[float], left: float, wide: float) -> str:
    """The path of a stack's layer: along its top to the right, along its bottom back."""

    def along(values: list[float], start: int, to: int) -> str:
        steps, last = "", None
        for i in range(start, to, 1 if to > start else -1):
            if n(values[i]) != last:
                last = n(values[i])
                steps += f"V{last}"
            ahead = i + (1 if to > start else -1)
            if ahead == to or n(values[ahead]) != last:
                steps += f"H{n(left + wide * (i + 1 if to > start else i))}"
        return steps

    count = len(high)
    return f"M{n(left)} {n(low[0])}{along(high, 0, count)}{along(low, count - 1, -1)}Z"


def _place(term, low, high, cuts: set[int], scale: float, wide: float):
    """Middle and height of a good spot for a layer's name: roomy, central, clear of phase lines."""
    columns = int((width_of(term) + 8) // wide) + 1
    best, spot = (0.0, 0.0, 0.0), None
    for start in range(len(low) - columns + 1):
        ceiling = min(high[start : start + columns]) * scale
        floor = max(low[start : start + columns]) * scale
        if ceiling - floor < SIZE + 4:
            continue
        clear = not any(start < cut < start + columns for cut in cuts)
        central = -abs(start + columns / 2 - len(low) / 2)
        rank = (float(clear), min(ceiling - floor, 4 * SIZE), central)
        if spot is None or rank > best:
            best, spot = rank, ((start + columns / 2) * wide, (ceiling + floor) / 2)
    return spot


def _phases(sheet: Canvas, left: float, base: float, wide: float, cuts: list[int], names) -> None:
    """A dotted line where a phase begins, and its name below the axis where there is room."""
    for cut in cuts[1:-1]:
        x = left + cut * wide
        sheet.line(x, base - HIGH, x, base + 6, GREY, "2 4")
    taken: list[tuple[float, float]] = []
    spans = sorted(zip(cuts, cuts[1:], strict=False), key=lambda span: span[0] - span[1])
    for start, end in spans:
        name = names[start] or ""
        half = width_of(name) / 2
        x = min(max(left + (start + end) / 2 * wide, left + half), WIDTH - half)
        if name and all(x + half + 8 < a or x - half - 8 > b for a, b in taken):
            sheet.words(x, base + 14, name, "middle")
            taken.append((x - half, x + half))


def _peak(sheet, left: float, base: float, wide: float, scale: float, totals, phases, lined):
    at = totals.index(max(totals))
    pattern = "peak {1}, {2}" if phases[at] else "peak {1}"
    words = Message(pattern, text(totals[at]), phases[at])
    x, y = left + (at + 0.5) * wide, base - totals[at] * scale
    half = width_of(words, bold=True) / 2
    middle = min(max(x, left + half), WIDTH - half)
    if lined:
        _patch(sheet, middle - half, y - 14, 2 * half)
    sheet.dot(x, y)
    sheet.words(middle, y - 14, words, "middle", INK, bold=True)


def _hill(sheet, left: float, base: float, wide: float, scale: float, totals, at, phase) -> None:
    """A dot at the top of a hill, its words on the side that looks away from the peak."""
    peak = totals.index(max(totals))
    words = Message("{1} {2}", phase, text(totals[at]))
    x, y = left + (at + 0.5) * wide, base - totals[at] * scale
    room = width_of(words)
    start, up = x + 8, 6
    if at < peak:
        start = max(x - 8 - room, left)
    elif start + room > WIDTH:
        start, up = WIDTH - room, 14
    _patch(sheet, start, y - up, room)
    sheet.dot(x, y)
    sheet.words(start, y - up, words)


def _patch(sheet: Canvas, x: float, middle: float, wide: float) -> None:
    """Plain paper under words, so that no line runs through them."""
    sheet.box(x - 2, middle - 8, wide + 4, 15, PAPER, edge="none")
