"""One layer as a column of operations, and beside each the tensors that autograd saves for it."""

from typing import Any

from ..base.message import Message
from ..units import text
from .canvas import Canvas, Picture, heading, ink_on, width_of
from .colours import COLOURS, GREY, INK, PAPER

HIGH, GAP, BOX, BARS, ROOM = 28, 9, 104, 124, 376
PLAIN, WIDE = COLOURS["activations"], "#B37A00"  # a saved tensor, and one in fp32
STAGES = (
    "norm",
    "q, k, v",
    "rotary",
    "attention",
    "out",
    "+ residual",
    "norm",
    "gate, up",
    "silu × up",
    "down",
    "+ residual",
)
NORM = ("pow.", "rsqrt.", "mul.", "rms_norm.")


def saved_layer(table: Any, title: str = "What one layer saves for backward") -> Picture:
    """Draw a layer of the Llama family and what it saves, each bar as wide as its bytes.

    Shapes      table: a `memlab.step` SavedTable, such as simulate(model, recipe, run).saved
    Unit        bytes
    Raises      ValueError for a tensor that no operation of such a layer saves
    """
    stages: list[list[Any]] = [[] for _ in STAGES]
    past_attention = False
    for row in table.rows:
        past_attention = past_attention or "attention" in row.kept_by
        stages[_stage(row, past_attention)].append(row)
    scale = ROOM / max(sum(row.bytes for row in rows) for rows in stages)
    sheet = Canvas()
    y = heading(sheet, title)
    y += 6 + sheet.key(0, y + 6, [("saved tensor", PLAIN), ("saved in fp32", WIDE)])
    for number, (name, rows) in enumerate(zip(STAGES, stages, strict=True)):
        middle = y + HIGH / 2
        if number:
            sheet.line(BOX / 2, y - GAP, BOX / 2, y, INK)
        sheet.box(0, y, BOX, HIGH, PAPER, edge=GREY)
        sheet.words(BOX / 2, middle, name, "middle")
        x = float(BARS)
        for row in rows:
            wide = row.bytes * scale
            fill = WIDE if row.dtype == "fp32" else PLAIN
            if wide >= 1:
                sheet.box(x, y, wide, HIGH, fill)
            label = _label(row)
            if label and width_of(label) + 4 <= wide:
                sheet.words(x + wide / 2, middle, label, "middle", ink_on(fill))
            x += wide
        if rows:
            size = text(sum(row.bytes for row in rows))
            sheet.words(x + 8, middle, size, bold=True)
            if note := _note(name, rows):
                sheet.words(x + 16 + width_of(size, bold=True), middle, note, colour=GREY)
        else:
            sheet.words(x, middle, _nothing(name), colour=GREY)
        y += HIGH + GAP
    total = Message("one layer: {1}", text(table.bytes))
    sheet.words(BARS, y + 8, total, bold=True)
    return sheet.picture(title, y + 20)


def _stage(row: Any, past_attention: bool) -> int:
    """Which operation saves it: the number of a stage."""
    kept = row.kept_by
    if "attention" in kept:
        return 3
    if kept.startswith("linear q"):
        return 1
    if kept.startswith("linear gate"):
        return 7
    if kept.startswith("linear down"):
        return 9
    if row.shape.endswith("F") and kept.startswith(("silu.", "mul.")):
        return 8
    if kept.startswith(NORM) and row.shape.endswith(("D", "1")):
        return 6 if past_attention else 0
    raise ValueError(f"{kept} ({row.shape}) is not of a layer of the Llama family")


def _label(row: Any) -> str:
    names = {"silu.self": "gate", "mul.other": "up", "mul.self": "silu"}
    if row.shape.endswith("F"):
        return names.get(row.kept_by, "product")
    return "B·T·D" if row.shape.endswith("D") else ""


def _note(name: str, rows: list[Any]) -> str:
    if name == "norm":
        wide = [row for row in rows if row.bytes >= max(one.bytes for one in rows) / 2]
        return "input in fp32, normalized values" if len(wide) > 1 else "its input"
    notes = {
        "q, k, v": "one input for all three",
        "attention": "q, k, v, its output",
        "gate, up": "one input for both",
        "down": "its input",
    }
    return notes.get(name, "")


def _nothing(name: str) -> str:
    return "nothing new: attention's output" if name == "out" else "nothing"
