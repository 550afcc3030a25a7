"""An answer's text as an exact number, with the arithmetic that a learner would type into a cell.

Plain enough for MicroPython: the page's engine reads a field with this very file. A number is a
ratio of whole numbers, (above, below), so that no byte is lost to a float.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    Ratio = tuple[int, int]
    Parts = list[Ratio | str]

LONGEST = 200  # letters of an answer
LARGEST = 10**90  # above and below the line; also what keeps 9**9**9 from being computed
SIGNS = {"×": "*", "·": "*", "−": "-"}  # as the book prints them


def number_in(text: str, names: Mapping[str, int] | None = None) -> Ratio | None:
    """The number that a text says, or None where it says none.

    Example     number_in("3 * 2**10") -> (3072, 1), number_in("33/32") -> (33, 32),
                number_in("2 KiB + 1", {"KiB": 1024}) -> (2049, 1)
    Shapes      names: units, which multiply what stands before them
    """
    try:
        parts = _parts(text.strip(), names or {})
        found = _sum(parts)
    except (ValueError, ZeroDivisionError):
        return None
    return None if parts else found


def _parts(text: str, names: Mapping[str, int]) -> Parts:
    """Numbers and signs of a text, the last one first: a list is read from its end."""
    if not text or len(text) > LONGEST:
        raise ValueError("no answer")
    found: Parts = []
    at = 0
    while at < len(text):
        letter = SIGNS.get(text[at], text[at])
        end = at + 1
        if letter.isdigit() or letter == ".":
            value, end = _figures(text, at)
            found.append(value)
        elif letter.isalpha():
            while end < len(text) and text[end].isalpha():
                end += 1
            if text[at:end] not in names:
                raise ValueError("an unknown word")
            # "1.5 GiB" is a product; so is "2**10 KiB", and "GiB" alone is one of them.
            if found and (found[-1] == ")" or not isinstance(found[-1], str)):
                found.append("*")
            found.append((names[text[at:end]], 1))
        elif text[at : at + 2] in ("**", "//"):
            end = at + 2
            found.append(text[at:end])
        elif letter in "+-*/()":
            found.append(letter)
        elif not letter.isspace():
            raise ValueError("an unknown sign")
        at = end
    found.reverse()
    return found


def _figures(text: str, at: int) -> tuple[Ratio, int]:
    """The number that begins there, and where it ends: 8192, 8,192, 8_192, 1.5, .5 or 2e9."""
    end = at
    while end < len(text) and (text[end].isdigit() or text[end] in ",_."):
        end += 1
    whole, dot, after = text[at:end].partition(".")
    power = 0
    if text[end : end + 1] in ("e", "E"):
        start = end = end + 1
        end += text[end : end + 1] in ("+", "-")
        while end < len(text) and text[end].isdigit():
            end += 1
        power = int(text[start:end])
    groups = whole.split(",")
    parted = len(groups) == 1 or (groups[0] and all(len(each) == 3 for each in groups[1:]))
    digits = "".join(groups) + after
    for each in (whole, after):  # Python's own rule: between two digits
        if each[:1] == "_" or each[-1:] == "_" or "__" in each:
            raise ValueError("a mark that parts nothing")
    digits = digits.replace("_", "")
    if not parted or not digits or not all(c in "0123456789" for c in digits) or abs(power) > 60:
        raise ValueError("no number")
    shift = power - len(after.replace("_", ""))
    value = int(digits) * 10 ** max(shift, 0), 10 ** max(-shift, 0)
    return _held(value), end


def _sum(parts: Parts) -> Ratio:
    found = _product(parts)
    while parts and parts[-1] in ("+", "-"):
        sign = 1 if parts.pop() == "+" else -1
        above, below = _product(parts)
        found = _held((found[0] * below + sign * above * found[1], found[1] * below))
    return found


def _product(parts: Parts) -> Ratio:
    found = _signed(parts)
    while parts and parts[-1] in ("*", "/", "//"):
        sign = parts.pop()
        above, below = _signed(parts)
        if sign != "*":
            above, below = below, above
        if below == 0:
            raise ZeroDivisionError
        found = found[0] * above, found[1] * below
        if sign == "//":
            found = found[0] // found[1], 1
        found = _held(found)
    return found


def _signed(parts: Parts) -> Ratio:
    """A power with its sign, which binds less than the power: -2**2 is -4."""
    if parts and parts[-1] in ("+", "-"):
        sign = 1 if parts.pop() == "+" else -1
        above, below = _signed(parts)
        return sign * above, below
    found = _one(parts)
    if parts and parts[-1] == "**":
        parts.pop()
        above, below = _signed(parts)
        if below != 1 or abs(above) > 300:
            raise ValueError("no such power")
        if above < 0 and not found[0]:
            raise ZeroDivisionError
        base = found if above >= 0 else (found[1], found[0])
        found = _power(base, abs(above))
    return found


def _power(base: Ratio, count: int) -> Ratio:
    made = 1, 1
    for _ in range(count):  # so that it stops where the number grows too large
        made = _held((made[0] * base[0], made[1] * base[1]))
    return made


def _one(parts: Parts) -> Ratio:
    if not parts:
        raise ValueError("something is missing")
    found = parts.pop()
    if found == "(":
        found = _sum(parts)
        if not parts or parts.pop() != ")":
            raise ValueError("a bracket is open")
    if isinstance(found, str):
        raise ValueError("a sign in a number's place")
    return found


def _held(value: Ratio) -> Ratio:
    """The ratio in lowest terms and with its sign above, if it is no larger than any answer."""
    a, b = abs(value[0]), abs(value[1])
    while b:
        a, b = b, a % b
    above, below = value[0] // a, value[1] // a
    if abs(above) > LARGEST or abs(below) > LARGEST:
        raise ValueError("beyond all measure")
    return (-above, -below) if below < 0 else (above, below)
