"""A layer of experts as a picture: tokens, their copies sorted by expert, and every expert."""

from collections.abc import Sequence

from ..base.message import Message
from ..base.messages import Localized, say
from .canvas import PHONE, SIZE, WIDTH, Canvas, Picture, heading, room_of, wrap
from .colours import COLOURS, GREY, ink_on

HIGH, GAP, NARROW = 22, 7, 54  # of a row, between two experts, a column of rows
AIR = 4  # beside a column's shape
COPIES, EXPERTS, WIDE, RESULTS, SUMS = 144, 232, 122, 388, WIDTH - NARROW
ROWS, WEIGHTS = COLOURS["activations"], COLOURS["weights"]
TITLE = "A layer of experts"
HEADS = (
    (NARROW / 2, "tokens", "[R, D]"),
    (COPIES + NARROW / 2, "copies", "[k·R, D]"),
    (EXPERTS + WIDE / 2, "experts", "X · 3·D·M"),
    (RESULTS + NARROW / 2, "results", "[k·R, D]"),
    (SUMS + NARROW / 2, "sums", "[R, D]"),
)


def routing(chosen: Sequence[Sequence[int]], experts: int, title: str = "") -> Picture:
    """Draw where each token goes: permute, the experts, unpermute.

    Shapes      chosen: the experts of each token, k numbers below `experts` for each
    Raises      ValueError for no token, and for an expert that there is not
    """
    if not chosen:
        raise ValueError("no tokens to draw; name the experts of at least one: routing([[0]], 2)")
    for token, picked in enumerate(chosen):
        for expert in picked:
            if not 0 <= expert < experts:
                raise ValueError(f"token {token} goes to expert {expert}; there are X={experts}")
    sheet = Canvas()
    top = heading(sheet, title) + 8
    for x, words, shape in HEADS:
        sheet.words(x, top, say(words, TITLE), "middle", bold=True)
        sheet.words(x, top + 18, Localized(shape), "middle", colour=GREY)
    _between(sheet, 0, top + 18, "permute")
    _between(sheet, 3, top + 18, "unpermute")
    top += 36
    loads = [
        [t for t, picked in enumerate(chosen) if expert in picked] for expert in range(experts)
    ]
    high = sum(max(1, len(load)) * HIGH + GAP for load in loads) - GAP
    step = high / len(chosen)
    middles = [top + step * (token + 0.5) for token in range(len(chosen))]
    y = top
    for expert, load in enumerate(loads):
        tall = max(1, len(load)) * HIGH
        middle = y + tall / 2
        for row, token in enumerate(load):
            place = y + HIGH * (row + 0.5)
            sheet.line(NARROW, middles[token], COPIES, place)
            sheet.line(COPIES + NARROW, place, EXPERTS, middle)
            sheet.line(EXPERTS + WIDE, middle, RESULTS, place)
            sheet.line(RESULTS + NARROW, place, SUMS, middles[token])
            _row(sheet, COPIES, place, token)
            _row(sheet, RESULTS, place, token)
        # All of one size, however many rows come: so are their matrices.
        sheet.box(EXPERTS, middle - HIGH / 2, WIDE, HIGH, WEIGHTS)
        said = Message("expert {1}" if load else "expert {1}, idle", expert + 1)
        sheet.words(EXPERTS + WIDE / 2, middle, said, "middle", colour=ink_on(WEIGHTS))
        y += tall + GAP
    for token, middle in enumerate(middles):
        _row(sheet, 0, middle, token)
        _row(sheet, SUMS, middle, token)
    return sheet.picture(title or TITLE, y)


def _between(sheet: Canvas, column: int, y: float, word: str) -> None:
    """What is done between a column and the next: beside their shapes, or in two lines."""
    (left, _, one), (right, _, other) = HEADS[column : column + 2]
    low, high = left + room_of(one) / 2 + AIR, right - room_of(other) / 2 - AIR
    middle, half, lines = (left + right) / 2, room_of(word) / 2, [word]
    if half > min(middle - low, high - middle):
        middle = (low + high) / 2
    if 2 * half > high - low:
        lines = wrap(word, (high - low) * SIZE / PHONE)
    for i, line in enumerate(lines):
        sheet.words(middle, y - 18 * (len(lines) - 1 - i), line, "middle", colour=GREY)


def _row(sheet: Canvas, x: float, middle: float, token: int) -> None:
    """One token's row: a box with its number."""
    sheet.box(x, middle - HIGH / 2, NARROW, HIGH, ROWS)
    sheet.words(x + NARROW / 2, middle, Localized(str(token + 1)), "middle", colour=ink_on(ROWS))
