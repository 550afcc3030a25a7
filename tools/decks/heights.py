"""About how much of a slide a block takes."""

import math
import re

WIDE = 78  # letters of a line, on the narrower slide
TAG = re.compile(r"<[^>]*>")


def width(text):
    """Letters of a text, of which an ideograph takes two."""
    text = TAG.sub("", text)
    return sum(2 if ord(letter) > 0x2E80 else 1 for letter in text)


def height(kind, text):
    """About how many lines a block takes on a slide."""
    if kind == "p":
        return math.ceil(width(text) / WIDE) + 0.6
    if kind == "list":
        return sum(math.ceil(width(line) / (WIDE - 4)) + 0.3 for line in text.split("\n"))
    if kind == "table":
        return 1.5 * text.count("\n") + sum(width(line) > 1.3 * WIDE for line in text.split("\n"))
    if kind == "math":
        return 3.5 + 1.5 * text.count(r"\\")
    return 1.0 + 0.9 * len(text.strip().split("\n"))
