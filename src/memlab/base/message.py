"""A text that knows its values: English as a text, and said in any language by its pattern.

Whoever makes a sentence gives the pattern and what stands in its places, so that a catalogue is
asked for the pattern and for each value: no word and no number is taken out of a finished text. The
page's engine has memlab/page/there/message.py in this place, its page book/calculator/say.mjs.
"""

from __future__ import annotations

import re

from .numerals import written

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

PLACE = re.compile(r"\{(\w+)\}")


class Message(str):
    """A sentence with values in its places, which are counted or have names.

    Example     Message("{1} of {2} fit", 3, 8) -> "3 of 8 fit"
    Shapes      values, named: texts, numbers, messages
    Raises      KeyError for a place without a value
    """

    pattern: str
    values: Any  # {place: value}

    def __new__(cls, pattern: str, *values: object, **named: object) -> Message:
        given = {str(i): value for i, value in enumerate(values, 1)} | named
        made = super().__new__(cls, PLACE.sub(lambda place: str(given[place[1]]), pattern))
        made.pattern, made.values = pattern, given
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (type(self), str(self), self.pattern, self.values)


class Listed(Message):
    """Texts with a mark between them.

    Example     Listed(", ", ["weights", "buffers"]) -> "weights, buffers"
    """

    def __new__(cls, mark: str, parts: Iterable[object]) -> Listed:
        values = list(parts)
        made = str.__new__(cls, mark.join(map(str, values)))
        made.pattern, made.values = mark, values
        return made


def _again(cls: type[Message], text: str, pattern: str, values: Any) -> Message:
    made = str.__new__(cls, text)
    made.pattern, made.values = pattern, values
    return made


def said(told: object, words: Mapping[str, str]) -> str:
    """A text or a message by `words`, English -> translation; what they lack stays English."""
    if isinstance(told, Listed):
        return told.pattern.join(said(each, words) for each in told.values)
    if isinstance(told, Message):
        pattern = words.get(told.pattern, told.pattern)
        return PLACE.sub(lambda place: said(told.values[place[1]], words), pattern)
    return words.get(told, told) if isinstance(told, str) else str(told)


def rendered(told: object, words: Mapping[str, str], language: str = "en") -> str:
    """The same with its numbers as the language writes them."""
    return written(said(told, words), language)


def parts(value: Any) -> Any:
    """A value for JSON: a message is [pattern, {place: value}], a list [mark, [values]]."""
    if isinstance(value, Message):
        return [value.pattern, parts(value.values)]
    if isinstance(value, dict):
        return {key: parts(each) for key, each in value.items()}
    return [parts(each) for each in value] if isinstance(value, (list, tuple)) else value


def dumps(value: Any) -> str:
    """JSON in which messages are their parts."""
    import json  # when asked for: the command line seldom does

    return json.dumps(parts(value))
