"""Bytes to text and back: the only place in memlab that rounds.

Memory is counted in powers of two (KiB, MiB, GiB, TiB). Powers of ten (kB, MB, GB, TB) are for the
names of cards, for disks and for bandwidth. Everything here is integer arithmetic, so that no byte
is lost to a float, and plain enough to run under MicroPython in the page's calculator.
"""

from collections import OrderedDict

KiB, MiB, GiB, TiB = 2**10, 2**20, 2**30, 2**40
# IEC 80000-13:2025 for the binary names, SI Brochure (9th edition) for the decimal ones.
kB, MB, GB, TB = 10**3, 10**6, 10**9, 10**12

# The most that is taken of what a program has many of: sequences, tokens, values of a width; and
# of what it has some of: ranks of processes or adapters, tokens of a prompt that is trained.
MOST, MANY = 10**9, 10**6

# MicroPython forgets the order of a plain dict, and `text` goes through these from large to small.
BINARY = OrderedDict([("B", 1), ("KiB", KiB), ("MiB", MiB), ("GiB", GiB), ("TiB", TiB)])
DECIMAL = OrderedDict([("B", 1), ("kB", kB), ("MB", MB), ("GB", GB), ("TB", TB)])


def whole(name: str, value: int) -> int:
    """Return `value` if it is a non-negative whole number, or say what it is.

    Raises      TypeError for anything but an int (a bool or a float is not a count),
                ValueError for a negative one
    """
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name}={value!r} is a {type(value).__name__}; a whole number is needed")
    if value < 0:
        raise ValueError(f"{name}={value} is negative; a count is zero or more")
    return value


def at_least_one(name: str, count: int, most: int | None = None) -> int:
    """A whole number that is not 0, and at most so large.

    Raises      ValueError for 0 and for more; what `whole` raises
    """
    if whole(name, count) == 0:
        raise ValueError(f"{name}=0; at least 1 is needed")
    if most is not None and count > most:
        raise ValueError(f"{name}={count:,}; at most {most:,} are taken")
    return count


def text(count: int, *, decimal: bool = False, digits: int = 4) -> str:
    """Bytes as a person reads them, rounded half up to `digits` significant digits.

    Example     text(536870912) -> "512 MiB", text(-1536) -> "-1.5 KiB"
    Unit        the largest of B, KiB, MiB, GiB, TiB (kB … TB with `decimal`) not above the number
    Leaves out  what rounding drops; `exact` drops nothing
    Raises      TypeError if `count` is not a whole number
    """
    if isinstance(count, int) and count < 0:
        return "-" + text(-count, decimal=decimal, digits=digits)
    whole("count", count)
    table = list((DECIMAL if decimal else BINARY).items())
    for i in range(len(table) - 1, -1, -1):
        name, size = table[i]
        if count >= size or i == 0:
            break
    places = max(0, digits - len(str(count // size))) if size > 1 else 0
    scaled = (count * 10**places * 2 + size) // (size * 2)
    # 1023.99 KiB rounds up to 1024 KiB: say 1 MiB instead.
    if i + 1 < len(table) and scaled * size >= table[i + 1][1] * 10**places:
        name, scaled = table[i + 1][0], 10**places
    return f"{_digits(scaled, places)} {name}"


def exact(count: int, *, decimal: bool = False) -> str:
    """Bytes as text that `parse` turns back into the same number, always.

    Example     exact(1610612736) -> "1.5 GiB", exact(3621633) -> "3,621,633 B"
    Unit        the largest in which the number needs at most three decimals, else bytes
    Raises      TypeError if `count` is not a whole number
    """
    if isinstance(count, int) and count < 0:
        return "-" + exact(-count, decimal=decimal)
    whole("count", count)
    for name, size in reversed(list((DECIMAL if decimal else BINARY).items())):
        if count >= size and count * 1000 % size == 0:
            return f"{_digits(count * 1000 // size, 3)} {name}"
    return "0 B"


def parse(words: str, *, bare: bool = False) -> int:
    """The whole number of bytes that a text such as "62.4 GiB", "80 GB" or "3,621,632 B" says.

    Unit        bytes; `bare` lets a number without a unit be bytes, where a question asks for them
    Raises      ValueError for an unknown unit, for a number without one (but 0 is 0 in each), for
                something that is not a number, and for a part of a byte ("0.3 B"); "62.4 GiB" is
                the nearest whole number of them
    """
    if not isinstance(words, str):
        raise TypeError(f"words={words!r} is a {type(words).__name__}; text is needed")
    line = words.strip()
    cut = len(line)
    while cut and line[cut - 1].isalpha():
        cut -= 1
    number, said = line[:cut].strip(), line[cut:]
    name = said or "B"
    size = BINARY.get(name) or DECIMAL.get(name)
    if size is None:
        units = list(BINARY) + list(DECIMAL)[1:]
        near = [each for each in units if name.lower() in (each.lower(), each[0].lower())]
        hint = f"did you mean {' or '.join(near)}? " if near else ""
        raise ValueError(f"unknown unit {name!r} in {words!r}; {hint}known: {', '.join(units)}")
    sign = -1 if number[:1] == "-" else 1
    before, _, after = (number[1:] if number[:1] in ("+", "-") else number).partition(".")
    groups = before.split(",")
    digits = "".join(groups) + after
    # "1,5 GiB" is 1.5 to half of the world: commas may only part thousands.
    parted = len(groups) == 1 or (groups[0] and all(len(each) == 3 for each in groups[1:]))
    if not parted or not digits or not all(c in "0123456789" for c in digits):
        hint = f"; did you mean {words.replace(',', '.')}?" if len(groups) == 2 and digits else ""
        raise ValueError(f"{words!r} does not start with a number such as 1.5 or 3,621,632{hint}")
    if not said and not bare and int(digits):
        # People who leave the unit out think in GB: "24" is a card, and never 24 bytes.
        likely = "GB" if len(before) < 4 else "MB" if len(before) < 7 else "B"
        raise ValueError(f"{words!r} has no unit; say it: {number} {likely}?")
    scaled, parts = int(digits) * size, 10 ** len(after)
    found = (2 * scaled + parts) // (2 * parts)
    if scaled % parts and (size == 1 or not found):
        raise ValueError(f"{words!r} is not a whole number of bytes")
    return sign * found


def _digits(scaled: int, places: int) -> str:
    """`scaled` / 10**places with thousands separators and no trailing zeros."""
    size = 10**places
    after = str(scaled % size + size)[1:].rstrip("0") if places else ""
    return f"{scaled // size:,}" + (f".{after}" if after else "")
