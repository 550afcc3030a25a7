"""The copies of the logits in time: a shade for each, stacked from the head to its backward."""

from ..base.message import Message
from ..terms.logits import MOMENTS, copies
from ..units import text
from .canvas import WIDTH, Canvas, Picture, heading, ink_on, room_of, width_of, wrap
from .colours import GREY, INK
from .ticks import step_of

HIGH, LINE = 280, 17
# Light to dark around the colour of logits, so that neighbours in the stack stay apart.
SHADES = ("#FBE3D0", "#F3B68C", "#D55E00", "#F8CFAF", "#A34800", "#E98B4A")
BELOW = ("head", "upcast", "softmax", "nll", "softmax", "cast", "head")
NAMES = {
    "logits": ("logits",),
    "upcast": ("upcast",),
    "log_probs": ("log p",),
    "log_probs_gradient": ("gradient", "of log p"),
    "upcast_gradient": ("gradient", "of upcast"),
    "gradient": ("cast",),
}


def logits_in_time(
    rows: int,
    *,
    vocab: int,
    format: str = "bf16",
    upcast: bool = True,
    kept: bool = False,
    title: str = "The copies of the logits",
) -> Picture:
    """Draw every copy of the logits from the operator that makes it to the last that reads it.

    Shapes      x: the operators of head and loss, forward and backward; y: bytes, stacked
    Source      `memlab.terms.logits.copies`, whose arguments these are
    Raises      ValueError for no rows or no words; otherwise as `copies`
    """
    found = copies(rows, vocab=vocab, format=format, upcast=upcast, kept=kept)
    lives = [
        (name, kind, size, MOMENTS.index(born), MOMENTS.index(last))
        for name, kind, size, born, last in found
    ]
    totals = [sum(s for _, _, s, a, b in lives if a <= at <= b) for at in range(len(MOMENTS))]
    peak = max(totals)
    if not peak:
        raise ValueError(f"rows={rows}, vocab={vocab}: there is nothing to draw")
    sheet = Canvas()
    step = step_of(peak, 5)
    left = max(width_of(text(size)) for size in range(0, peak + 1, step)) + 10
    wide, scale = (WIDTH - left) / len(MOMENTS), HIGH / peak
    base = heading(sheet, title) + 26 + HIGH
    for size in range(0, peak + 1, step):
        sheet.line(left, base - size * scale, WIDTH, base - size * scale, "#DDDDDD")
        sheet.words(left - 8, base - size * scale, text(size), "end", GREY)
    floor = [0] * len(MOMENTS)
    for number, (name, kind, size, born, last) in enumerate(lives):
        spans: list[list[int]] = []  # columns side by side that stand equally high
        for at in range(born, last + 1):
            if spans and floor[at] == floor[at - 1]:
                spans[-1].append(at)
            else:
                spans.append([at])
        widest = max(spans, key=len)
        for span in spans:
            x, y = left + wide * span[0], base - (floor[span[0]] + size) * scale
            sheet.box(x, y, wide * len(span), size * scale, SHADES[number])
            words: list[str] = [Message("{1} · {2}", number + 1, kind)]
            words = _words(number, name, kind) if span is widest else words
            lines = _lines(words, wide * len(span) - 2)
            if len(words) < len(lines) > size * scale / LINE:
                # Without the format, which the column beside says.
                lines = _lines(words[:-1], wide * len(span) - 2)
            if size * scale >= LINE * len(lines):
                _label(sheet, x + wide * len(span) / 2, y + size * scale / 2, lines, number)
        for at in range(born, last + 1):
            floor[at] += size
    _axis(sheet, left, base, wide)
    at = totals.index(peak)
    said = Message("peak {1}", text(peak))
    half = width_of(said, bold=True) / 2
    x = min(left + wide * (at + 0.5), WIDTH - half)
    sheet.dot(left + wide * (at + 0.5), base - HIGH)
    sheet.words(x, base - HIGH - 14, said, "middle", INK, bold=True)
    return sheet.picture(title, base + 46)


def _words(number: int, name: str, kind: str) -> list[str]:
    first, *rest = NAMES[name]
    if name == "gradient" and kind == "fp32":
        first, rest = "gradient", []
    return [Message("{1} {2}", number + 1, first), *rest, *([kind] if not rest else [])]


def _lines(words: list[str], wide: float) -> list[str]:
    """The lines of a label, each in two where the column is too narrow for it."""
    fits = [[word] if room_of(word) <= wide else wrap(word, wide) for word in words]
    return [line for lines in fits for line in lines]


def _label(sheet: Canvas, x: float, y: float, words: list[str], number: int) -> None:
    for i, word in enumerate(words):
        place = y + LINE * (i - (len(words) - 1) / 2)
        sheet.words(x, place, word, "middle", ink_on(SHADES[number]))


def _axis(sheet: Canvas, left: float, base: float, wide: float) -> None:
    """The operators below the picture, and where the backward pass begins."""
    for at, word in enumerate(BELOW):
        sheet.words(left + wide * (at + 0.5), base + 14, word, "middle")
    middle = left + wide * MOMENTS.index("nll_backward")
    sheet.line(middle, base - HIGH - 20, middle, base + 40, INK, "2 4")
    sheet.words((left + middle) / 2, base + 34, "forward", "middle", GREY)
    sheet.words((middle + WIDTH) / 2, base + 34, "backward", "middle", GREY)
