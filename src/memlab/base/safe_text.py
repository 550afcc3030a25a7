"""Text from outside, made fit to be printed: nothing in it may move a cursor or end a line.

A file's name, a title in a config, the command of a timeline: whoever wrote them may have put an
escape sequence there, which a terminal would obey (clear the screen, set the window's title, answer
with text that is then typed). And a terminal in a narrow encoding has no × and no →.
"""

from __future__ import annotations

# Blanks that str.isprintable calls unprintable, and that are harmless.
BLANKS = "\u00a0\u2009\u202f\u3000"
# What memlab writes beyond ASCII, for terminals that cannot show it. No quotes: they end a text.
PLAIN = {
    "·": "-",
    "×": "x",
    "→": "->",
    "←": "<-",
    "✓": "ok",
    "✗": "no",
    "○": "o",
    "─": "-",
    "…": "...",
    "−": "-",
    "–": "-",
    "≤": "<=",
    "≥": ">=",
    "≈": "~",
    "µ": "u",
    "½": "1/2",
    "“": "'",
    "”": "'",
    "„": "'",
    "‘": "'",
    "’": "'",
    "²": "^2",
    "\u00a0": " ",
    "\u2009": " ",
    "\u202f": " ",
    "\u3000": " ",
}


def printable(words: str, *, keep: str = "") -> str:
    r"""The same text with control characters, escapes and half characters spelled out.

    Example     printable("a\x1b[2J") -> "a\\u001b[2J", which JSON reads as the same text
    keep        characters that stay as they are, such as "\n" in what has several lines
    Leaves out  letters that only look like others
    """
    if words.isascii() and words.isprintable():
        return words
    return "".join(c if c.isprintable() or c in BLANKS or c in keep else _spelled(c) for c in words)


def plain(words: str) -> str:
    """The same text in ASCII: signs by their nearest spelling, "?" for what has none."""
    return "".join(c if c.isascii() else _nearest(c) for c in words)


def narrowed(error: UnicodeError) -> tuple[str, int]:
    """What `codecs.register_error` takes: the characters that an encoding lacks, in ASCII."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return plain(error.object[error.start : error.end]), error.end


def _spelled(character: str) -> str:
    number = ord(character)
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def _nearest(character: str) -> str:
    if character in PLAIN:
        return PLAIN[character]
    import unicodedata  # its tables are large, and hardly anything asks

    apart = unicodedata.normalize("NFKD", character)
    return "".join(c for c in apart if c.isascii()) or "?"
