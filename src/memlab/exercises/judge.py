"""What to say to an answer: right, or the slip that it shows. The page's engine runs this file too.

A value is a text, or a ratio of whole numbers, (above, below).
"""

from __future__ import annotations

from .. import units
from ..base.message import Listed, Message
from .number import number_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from .number import Ratio

    Value = Ratio | str

NOT_BYTES = "Bytes are whole numbers: write an integer, or text such as '1.5 GiB'."
NOT_A_NUMBER = "A number is asked for."
BITS = "That is the number of bits; a byte holds eight."
EIGHTH = "That is an eighth of it: bytes were divided by 8 once too often."
DECIMAL = "Those are powers of ten (GB); memory is counted in powers of two (GiB)."
BINARY = "Those are powers of two (GiB); here powers of ten (GB) are asked for."
CLOSE = "Very close: something was rounded on the way. Count to the last byte."
UNREAD = "“{1}” cannot be read as a number of bytes."
MEANT = "“{1}” cannot be read as a number of bytes; did you mean {2}?"

WAITS, RIGHT, WRONG = "○", "✓", "✗"
BYTES = "B"
ALIKE = 10**9  # a float that took another road to the same number may differ in its last digits
NEAR = 200  # rounded to about three digits


def judged(
    given: Value, right: Value, unit: str, hint: str, wrong: Iterable[tuple[Value, str]]
) -> tuple[str, str]:
    """The mark and the sentence for an answer: ○, ✓ with the answer, or ✗ with a hint.

    Shapes      given, right: values; wrong: pairs of a value and the sentence that helps
    """
    if isinstance(given, str) and not given.strip():
        return WAITS, "…"
    value = given
    if isinstance(given, str) and not isinstance(right, str):
        found = read(given, unit)
        if found is None:
            return WRONG, _unread(given.strip()) if unit == BYTES else NOT_A_NUMBER
        value = found
    if same(value, right):
        return RIGHT, shown(right, unit)
    for slip, sentence in wrong:
        if same(value, slip):
            return WRONG, sentence
    if unit != BYTES or isinstance(value, str) or isinstance(right, str):
        return WRONG, hint
    if value[1] != 1:
        return WRONG, CLOSE if _apart(value, right, NEAR) else NOT_BYTES
    return WRONG, _slip(value, right) or hint


def read(text: str, unit: str) -> Ratio | None:
    """The number that a text says to a question that asks for this unit, or None."""
    words = text.strip().strip("'\"").strip()
    return _bytes_in(words) if unit == BYTES else _counted(words, unit)


def _bytes_in(words: str) -> Ratio | None:
    """What `units.parse` reads, or a calculation with units."""
    try:
        return units.parse(words, bare=True), 1  # the question asks for bytes
    except ValueError:
        return number_in(words, _names())


def _names() -> dict[str, int]:
    names = {"byte": 1, "bytes": 1}
    names.update(units.DECIMAL)
    names.update(units.BINARY)
    return names


def _counted(words: str, unit: str) -> Ratio | None:
    """A number of what the question asks for, whose name may stand behind it."""
    for end in (unit, "%" if unit == "per cent" else ""):
        if end and words.endswith(end):
            words = words[: -len(end)]
    return number_in(words)


def _unread(words: str) -> str:
    """The sentence for a text that is no number of bytes: what it may mean, and what is wanted."""
    cut = len(words)
    while cut and words[cut - 1].isalpha():
        cut -= 1
    number, name = words[:cut].strip(), words[cut:]
    near = [
        each for each in units.BINARY if name and name.lower() in (each.lower(), each[0].lower())
    ]
    for meant in (number.replace(",", "."), number):
        text = f"{meant} {(near or [name])[0]}".strip()
        if text != words and _bytes_in(text) is not None:
            return Message(MEANT, **{"1": words, "2": text})
    return Listed(" ", [Message(UNREAD, **{"1": words}), NOT_BYTES])


def shown(value: Value, unit: str) -> str:
    """The value with its unit; bytes without rounding."""
    if isinstance(value, str):
        return value
    above, below = value
    if unit == BYTES:
        size = above // below
        return f"{size:,} B" + (f", {units.text(size)}" if size >= units.KiB else "")
    count = f"{above:,}" if below == 1 else f"{above / below:,.10g}"
    return Message(f"{{1}} {unit}", **{"1": count}) if unit else count


def same(value: Value, right: Value) -> bool:
    """Whether two values are one: whole numbers exactly, others to nine digits."""
    if isinstance(value, str) or isinstance(right, str):
        return str(value).strip().lower() == str(right).strip().lower()
    if value[1] == right[1] == 1:
        return value[0] == right[0]
    return _apart(value, right, ALIKE)


def _apart(one: Ratio, other: Ratio, parts: int) -> bool:
    """Whether two ratios differ by no more than this part of the larger."""
    a, b = one[0] * other[1], other[0] * one[1]
    return abs(a - b) * parts <= max(abs(a), abs(b))


def _slip(value: Ratio, right: Ratio) -> str:
    """The sentence for a slip that any question about bytes invites, or ""."""
    if not right[0]:
        return ""
    above, below = value[0] * right[1], value[1] * right[0]
    known = [(8, 1, BITS), (1, 8, EIGHTH)]
    for power in (1, 2, 3, 4):
        known.append((1000**power, 1024**power, DECIMAL))
        known.append((1024**power, 1000**power, BINARY))
    for a, b, sentence in known:
        if above * b == below * a:
            return sentence
    return CLOSE if abs(above - below) * NEAR < abs(below) else ""
