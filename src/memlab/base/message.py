"""A text that knows its values: English as a text, and said in any language by its pattern.

Whoever makes a sentence gives the pattern and what stands in its places, so that a catalogue is
asked for the pattern and for each value: no word and no number is taken out of a finished text. The
page's engine has memlab/page/micropython/message.py in this place, its page
book/calculator/say.mjs.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

PLACE = re.compile(r"\{(\w+)\}")
CONTEXT = "\x04"  # between a context and its message, as gettext has it
IDEOGRAPH = "[\u3000-\uffef]"  # or a mark as wide


class Localized(str):
    """A text that is in the reader's language already, such as a line of a longer one."""


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

    def __str__(self) -> str:
        return self  # str() of a text with values keeps them

    def __add__(self, other: str) -> Message:
        return Message("{1}{2}", self, other)

    def __radd__(self, other: str) -> Message:
        return Message("{1}{2}", other, self)

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (type(self), str.__str__(self), self.pattern, self.values)


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


def rendered(
    told: object, words: Mapping[str, str], language: str = "en", context: str = ""
) -> str:
    """A text or a message in a language, with its numbers as that writes them.

    A text is looked up as a whole. Of a message its pattern is, and each of its values; where the
    pattern is not known, it stays English with all that stands in it.

    words       English -> translation; what they lack stays English
    context     of a cell, the first heading of its table, where a word may have a sense of its own
    """
    from .numerals import written  # an English command line never does

    if isinstance(told, Localized):
        return told
    done, kept = "", []
    for piece in _pieces(told, words, context):
        if isinstance(piece, Localized):
            kept.append((len(done), len(done) + len(piece)))
        done += piece
    return written(done, language, kept)


def _pieces(
    told: object, words: Mapping[str, str], context: str = "", within: str = ""
) -> Iterator[str]:
    """What a text says in other words, part by part.

    within      the sentence that it stands in, whose script a list's commas are of
    """
    if isinstance(told, Listed):
        found = [list(_pieces(each, words)) for each in told.values]
        wide = told.pattern == ", " and re.search(IDEOGRAPH, within + "".join(map("".join, found)))
        for number, each in enumerate(found):
            if number:
                yield "、" if wide else told.pattern
            yield from each
    elif isinstance(told, Message):
        pattern = words.get(told.pattern)
        if pattern is None and is_sentence(told.pattern):
            yield Localized(told)  # its numbers too
            return
        for i, part in enumerate(PLACE.split(told.pattern if pattern is None else pattern)):
            if i % 2:
                yield from _pieces(told.values[part], words, within=pattern or "")
            else:
                yield part
    elif isinstance(told, Localized):
        yield told
    else:
        plain = str(told)
        yield words.get(f"{context}{CONTEXT}{plain}") or words.get(plain, plain)


def asked(told: object) -> Iterator[str]:
    """The patterns and texts that a language is asked for: of a message, and of its values."""
    if isinstance(told, Message):
        many = isinstance(told, Listed)
        yield from () if many else (told.pattern,)
        for each in told.values if many else told.values.values():
            yield from asked(each)
    elif not isinstance(told, Localized):
        yield str(told)


def is_sentence(pattern: str) -> bool:
    """Whether a text or a pattern has words of its own: more than figures, units and one name.

    A name has a digit or only capitals: bf16, Llama-3-8B, RTX 4090.
    """
    from .numerals import is_figures  # an English command line never does

    rest = PLACE.sub(" ", pattern)
    words = [word for word in re.findall(r"[^\s:·()]+", rest) if has_words(word)]
    named = all(word.isupper() or any(c.isdigit() for c in word) for word in words)
    listed = bool(words) and re.search("[,;]", rest) is not None
    return (listed or not named) and not is_figures(rest)


def is_message(text: str) -> bool:
    """Whether a language may say it otherwise: a sentence, or values with a mark between them."""
    marked = PLACE.search(text) and re.search("[,:;(]", PLACE.sub(" ", text))
    return bool(marked) or is_sentence(text)


def has_words(text: str) -> bool:
    """Whether two letters stand side by side."""
    return bool(re.search(r"[^\W\d_]{2}", text))


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
