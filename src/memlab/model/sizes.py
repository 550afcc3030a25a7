"""A bare size, "7B": no model, since bytes need a shape; which presets are about as large."""

from __future__ import annotations

from ..base.message import Listed, Message
from .model import Model
from .presets import PRESETS

UNITS = {"b": 10**9, "m": 10**6}
NEAR = 15  # percent of a size within which a preset is called as large
MOST = 8  # presets that are named
ABOUT = "{size} is no model but a size, and bytes need a shape; presets of about that size: {names}"
NEAREST = "{size} is no model but a size, and bytes need a shape; the nearest preset: {names}"
SAYS = (ABOUT, NEAREST)


def parameters(word: str) -> int:
    """The parameters that "7B", "1.5b" or "70 B" mean; 0: the word is no size.

    Unit        parameters, of which B are 10⁹ and M are 10⁶
    """
    digits = word.strip().lower()
    unit = UNITS.get(digits[-1:], 0)
    digits = digits[:-1].strip()
    whole, _, rest = digits.partition(".")
    if not unit or not whole or len(digits) > 9 or (rest == "" and "." in digits):
        return 0
    if not all([each in "0123456789" for each in whole + rest]):
        return 0
    return int(whole + rest) * unit // int(10 ** len(rest))


def near(count: int) -> list[str]:
    """The presets within NEAR percent of so many parameters, nearest first; else the nearest."""
    apart = [(abs(Model.preset(name).parameter_count - count), name) for name in PRESETS]
    apart.sort()
    within = [name for far, name in apart if far * 100 <= count * NEAR]
    return within[:MOST] or [apart[0][1]]


def about(word: str) -> str:
    """What to say of a bare size; "": it is none."""
    count = parameters(word)
    if not count:
        return ""
    known = near(count)
    apart = abs(Model.preset(known[0]).parameter_count - count)
    form = ABOUT if apart * 100 <= count * NEAR else NEAREST
    return Message(form, size=word.strip(), names=Listed(", ", [_told(name) for name in known]))


def billions(count: int) -> str:
    """Parameters as names of models write them: three digits of billions.

    Example     billions(8030261248) -> "8.03"
    """
    places = 3 if count < 10**9 else 2 if count < 10**10 else 1 if count < 10**11 else 0
    scaled = (count * 10**places + 5 * 10**8) // 10**9
    if not places:
        return f"{scaled}"
    digits = str(scaled)
    digits = "0" * (places + 1 - len(digits)) + digits
    return f"{digits[:-places]}.{digits[-places:]}"


def _told(name: str) -> str:
    return f"{name} ({billions(Model.preset(name).parameter_count)}B)"
