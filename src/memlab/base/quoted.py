"""What somebody else wrote, a model's name or a key of its config, as one line repeats it."""

from __future__ import annotations

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

MOST = 20  # values of a list: more than a line repeats
# First and last of what has no shape of its own: controls, marks that turn the direction of a line,
# halves of characters, private ones. MicroPython has no str.isprintable.
UNSEEN = (
    (0x00, 0x1F),
    (0x7F, 0x9F),
    (0xAD, 0xAD),
    (0x61C, 0x61C),
    (0x180E, 0x180E),
    (0x200B, 0x200F),
    (0x2028, 0x202E),
    (0x2060, 0x206F),
    (0xD800, 0xF8FF),
    (0xFEFF, 0xFEFF),
    (0xFFF0, 0xFFFF),
    (0xE0000, 0x10FFFF),
)


def visible(words: str) -> str:
    """The same letters, of any script; "?" for a character that cannot be seen.

    Leaves out  letters that only look like others
    """
    return "".join(["?" if any([a <= ord(c) <= z for a, z in UNSEEN]) else c for c in words])


def spelled(value: Any) -> str:
    """A value of JSON as text, the same in CPython, in MicroPython and from a browser's hands."""
    if isinstance(value, float):
        whole = abs(value) < 1e15 and value == int(value)  # which a browser hands over as one
        return str(int(value)) if whole else f"{value:g}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join([spelled(each) for each in value[:MOST]])}]"
    if isinstance(value, dict):
        return "{...}"
    return str(value)


def shown(value: Any) -> str:
    """A value as one short line may repeat it: only its beginning."""
    words = visible(value if isinstance(value, str) else spelled(value))
    return f"“{words[:40]}…”" if len(words) > 40 else f"“{words}”"
