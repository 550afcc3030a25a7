"""A decoder with its letters on it: every matrix by name and shape, along the residual stream."""

from .canvas import WIDTH, Canvas, Picture, heading
from .colours import COLOURS, GREY, INK, PAPER

HIGH, GAP, STREAM, LEFT = 34, 12, 22, 60  # of a box, between two rows, where the stream runs
# Rows from the tokens to the logits: each box has a name and, if it has weights, their shape.
BEFORE = ((("embedding", "[V, D]"),),)
ATTENTION = (
    (("norm", "[D]"),),
    (("q", "[N·H, D]"), ("k", "[K·H, D]"), ("v", "[K·H, D]")),
    (("attention: N heads of width H", ""),),
    (("out", "[D, N·H]"),),
)
FEED_FORWARD = (
    (("norm", "[D]"),),
    (("gate", "[F, D]"), ("up", "[F, D]")),
    (("silu(gate) × up: width F", ""),),
    (("down", "[D, F]"),),
)
AFTER = ((("last norm", "[D]"),), (("head", "[V, D]"),))


def decoder(title: str = "A decoder of the Llama family") -> Picture:
    """Draw the network from the tokens to the logits: filled boxes have weights, the others none.

    Shapes      as PyTorch stores them: [outputs, inputs]
    Leaves out  biases, norms on queries and keys, experts
    """
    sheet = Canvas()
    y = heading(sheet, title) + 6
    top = y
    y = _rows(sheet, y, BEFORE)
    frame = y + 4
    y = frame + 26
    for part in (ATTENTION, FEED_FORWARD):
        start = y
        y = _rows(sheet, y, part)
        _around(sheet, start - GAP / 2, y - GAP / 2)
        y += 8
    sheet.words(LEFT, frame + 10, "one layer, L times", bold=True)
    _frame(sheet, frame - 4, y - 4)
    y = _rows(sheet, y + 8, AFTER)
    end = y - 2 * (HIGH + GAP) + HIGH / 2  # in the last norm
    sheet.line(STREAM, top + HIGH / 2, STREAM, end, INK)
    for height in (top + HIGH / 2, end):
        sheet.line(STREAM, height, LEFT, height, INK)
    sheet.words(LEFT, y + 4, "logits: B × T × V", colour=GREY)
    sheet.words(WIDTH - 10, y + 4, "│ residual stream: B × T × D", "end", GREY)
    return sheet.picture(title, y + 20)


def _rows(sheet: Canvas, y: float, rows: tuple[tuple[tuple[str, str], ...], ...]) -> float:
    """Boxes side by side, row under row; where the next row begins."""
    for row in rows:
        wide = (WIDTH - LEFT - 20 - GAP * (len(row) - 1)) / len(row)
        for place, (name, shape) in enumerate(row):
            x = LEFT + place * (wide + GAP)
            sheet.box(x, y, wide, HIGH, COLOURS["weights"] if shape else PAPER, edge=GREY)
            words = f"{name}  {shape}" if shape else name
            sheet.words(x + wide / 2, y + HIGH / 2, words, "middle", PAPER if shape else INK)
        y += HIGH + GAP
    return y


def _around(sheet: Canvas, top: float, bottom: float) -> None:
    """The way around a block: what it adds to the stream."""
    sheet.line(STREAM, top + 4, LEFT, top + 4, INK)
    sheet.line(STREAM, bottom - 6, LEFT, bottom - 6, INK)
    sheet.words(STREAM + 6, bottom - 18, "+", bold=True)


def _frame(sheet: Canvas, top: float, bottom: float) -> None:
    for x1, y1, x2, y2 in (
        (LEFT - 10, top, WIDTH - 8, top),
        (LEFT - 10, bottom, WIDTH - 8, bottom),
        (LEFT - 10, top, LEFT - 10, bottom),
        (WIDTH - 8, top, WIDTH - 8, bottom),
    ):
        sheet.line(x1, y1, x2, y2, GREY, "5 4")
