"""A sentence of the calculator in another language; book/calculator/say.mjs does the same there."""

import re
from functools import cache

from memlab.base.numerals import written

PLACE = re.compile(r"\{(\w+)\}")
BETWEEN = (" + ", " · ", ", ", ": ")  # the outermost first


def say(text, words, language="en"):
    """The text by `words`, English -> translation: as a whole, by a pattern, or part by part.

    What stands in a pattern's place is said by itself; what no word knows stays as it is, but for
    its numbers, which stand as the language writes them.
    """
    return written(_said(text, words), language)


def _said(text, words):
    if text in words:
        return words[text]
    if found := matched(text, words):
        pattern, places = found
        return PLACE.sub(lambda place: _said(places[place[1]], words), words[pattern])
    for mark in BETWEEN:
        if mark in text:
            return mark.join(_said(part, words) for part in text.split(mark))
    return text


def matched(text, words):
    """The first pattern of `words` that is the whole text, and what stands in its places."""
    for pattern in words:
        if "{" in pattern and (found := _expression(pattern).fullmatch(text)):
            return pattern, found.groupdict()
    return None


@cache  # each text is held against all patterns
def _expression(pattern):
    parts = PLACE.split(pattern)
    return re.compile(
        "".join(f"(?P<{p}>.+?)" if i % 2 else re.escape(p) for i, p in enumerate(parts)), re.S
    )
