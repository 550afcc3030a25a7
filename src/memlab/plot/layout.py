"""Which bit says what: formats drawn one above another, a square for each bit."""

from ..base.message import Message
from ..formats import Format, format_of
from .canvas import SIZE, WIDTH, Canvas, Picture, heading, width_of
from .colours import GREY, ink_on

# None of these is the colour of a memory term.
PARTS = {
    "sign": "#1A1A1A",
    "exponent": "#F0E442",
    "mantissa": "#DDDDDD",
    "value": "#DDDDDD",
    "not used": "#FFFFFF",
}
HIGH, GAP = 26, 12


def bits(*formats: str | Format, title: str = "") -> Picture:
    """Draw the bits of one value of each format: sign, exponent, mantissa.

    Shapes      one row per format, one square per bit
    Unit        bits; at the row's end the bits in memory and, for a block format, what it shares
    Raises      ValueError for no format at all and for an unknown one
    """
    kinds = [format_of(name) for name in formats]
    if not kinds:
        raise ValueError("no format to draw; name at least one, such as bits('fp32', 'bf16')")
    sheet = Canvas()
    left = max(width_of(kind.name) for kind in kinds) + 12
    right = max(width_of(line) for kind in kinds for line in _end(kind)) + 12
    side = min(16, (WIDTH - left - right) / max(kind.bits for kind in kinds))
    y = heading(sheet, title)
    used = {name for kind in kinds for name, _ in parts(kind)}
    y += 6 + sheet.key(left, y + 6, [(name, PARTS[name]) for name in PARTS if name in used])
    for kind in kinds:
        lines = _end(kind)
        high = max(HIGH, (SIZE + 4) * len(lines))
        middle = y + high / 2
        sheet.words(0, middle, kind.name, bold=True)
        x = left
        for name, count in parts(kind):
            for i in range(count):
                sheet.box(x + i * side, middle - HIGH / 2, side, HIGH, PARTS[name], edge=GREY)
            wide, words = count * side, str(count)
            if width_of(both := Message("{1} {2}", name, count)) + 6 <= wide:
                words = both
            elif width_of(words) + 2 > wide:
                words = ""
            if words:
                # A plain patch, so that no square's edge runs through the words.
                patch = width_of(words) + 4
                start = x + wide / 2 - patch / 2
                sheet.box(start, middle - 9, patch, 18, PARTS[name], edge="none")
                sheet.words(x + wide / 2, middle, words, "middle", ink_on(PARTS[name]))
            x += wide
        for i, line in enumerate(lines):
            place = middle + (SIZE + 4) * (i - (len(lines) - 1) / 2)
            sheet.words(x + 10, place, line, colour=GREY)
        y += high + GAP
    return sheet.picture(title or Message("Bits of {1}", ", ".join(k.name for k in kinds)), y)


def parts(kind: Format) -> list[tuple[str, int]]:
    """(name, bits) of the parts of one value, from the highest bit down."""
    if kind.exponent_bits is None:
        return [("value", kind.bits)]
    rest = kind.bits - kind.exponent_bits - kind.mantissa_bits
    found = [
        ("sign", min(rest, 1)),
        ("exponent", kind.exponent_bits),
        ("mantissa", kind.mantissa_bits),
        ("not used", rest - min(rest, 1)),
    ]
    return [(name, count) for name, count in found if count]


def _end(kind: Format) -> list[str]:
    lines: list[str] = [Message("{1} bits", kind.bits)]
    for shared in (kind.scale, kind.zero):
        if shared is not None:
            per = Message("{1} values", kind.block) if kind.block else "row"
            lines.append(Message("+ {1} per {2}", shared.name, per))
    return lines
