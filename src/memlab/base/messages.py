"""What memlab prints, in the reader's language: headings of tables, labels of figures, hints.

The words come from the package's `locale/<language>.json`, which tools/i18n makes from the
catalogues of the book. A message is looked up as a whole, with its numbers taken out: "peak after
3 layers" is looked up as "peak after {1} layers". What no catalogue has stays English, and nothing
else in a result depends on the language, but how a number is written.
"""

import os
import re
from functools import cache
from pathlib import Path

from .numerals import written

FOLDER = Path(__file__).parent.parent / "locale"
ENGLISH = "en"
# A figure with its unit is one piece, printed alike in every language; the 16 of bf16 is none.
NUMBER = re.compile(
    r"(?<![\w.-])[-+−~≈]?\d+(?:[.,]\d+)*(?: ?(?:[KMGT]i?B\b|B\b|%|×|x\b))?(?![\w-])"
)

CONTEXT = "\x04"  # between a context and its message, as gettext has it
PLACE = re.compile(r"(\{\d+\})")

_chosen: list[str] = []
_heard: set[str] = set()
HEARD = os.environ.get("MEMLAB_HEARD")  # a file for all that is asked for: tools/notebooks.py


def languages() -> list[str]:
    """The languages memlab can print in, English first."""
    return [ENGLISH, *sorted(path.stem for path in FOLDER.glob("*.json"))]


def use_language(code: str) -> None:
    """Print in this language from now on.

    Example     use_language("pt-BR")
    Raises      ValueError for a language without a catalogue, with those there are
    """
    if code not in languages():
        raise ValueError(f"no language {code!r}; known: {', '.join(languages())}")
    _chosen[:] = [code]


def language() -> str:
    """The language in use: the one chosen, else that of the environment, else the notebook's.

    Source      MEMLAB_LANG; the notebook that Jupyter names in JPY_SESSION_NAME, whose metadata
                says in which language it is written
    """
    if not _chosen:
        asked = os.environ.get("MEMLAB_LANG") or _of_notebook(os.environ.get("JPY_SESSION_NAME"))
        _chosen.append(asked if asked in languages() else ENGLISH)
    return _chosen[0]


class Said(str):
    """A text that is in the reader's language already, such as a line of a longer one."""


class Message(str):
    """A sentence that knows its values: English as a text, and said by `say` in any language.

    Example     Message("{1} of {2} fit", 3, 8) -> "3 of 8 fit"
    """

    pattern: str
    values: tuple[str, ...]

    def __new__(cls, pattern: str, *values: object) -> "Message":
        shown = tuple(map(_text, values))
        made = super().__new__(cls, filled(pattern, list(shown)))
        made.pattern, made.values = pattern, shown
        return made

    def __reduce__(self) -> tuple[type["Message"], tuple[str, ...]]:
        return type(self), (self.pattern, *self.values)


def say(text: str, context: str = "") -> str:
    """The text in the language in use, or as it is where no translation is known.

    context     of a cell, the first heading of its table: a catalogue may have a word for this
                place alone, where a word has two senses
    """
    if isinstance(text, Said):
        return text
    if isinstance(text, Message):
        return told(text.pattern, *text.values)
    if HEARD and text not in _heard:
        _hear(text)
    if language() == ENGLISH:
        return text
    words = catalogue(language())
    return Said(written(placed(text, context, words) or translated(text, words), language()))


def placed(text: str, context: str, words: dict[str, str]) -> str | None:
    """What a catalogue says of a text in one place alone, if it does."""
    return words.get(f"{context}{CONTEXT}{text}")


def told(pattern: str, *values: object) -> str:
    """A message with its values, in the language in use."""
    shown = list(map(_text, values))
    if HEARD and language() != ENGLISH:  # tools/i18n/outputs.py: what a page was made of
        for text in (pattern, *shown):
            if text not in _heard:
                _hear(text)
    return Said(put(pattern, shown, catalogue(language()), language()))


def put(pattern: str, values: list[str], words: dict[str, str], code: str) -> str:
    """A message with its values by the catalogue of a language; English where it is not there."""
    if pattern not in words and has_words(PLACE.sub(" ", pattern)):
        return filled(pattern, values)

    def value(text: str) -> str:
        return text if isinstance(text, Said) else written(listed(text, words), code)

    parts = PLACE.split(words.get(pattern, pattern))
    return "".join(
        value(values[int(part[1:-1]) - 1]) if i % 2 else written(part, code)
        for i, part in enumerate(parts)
    )


# What stands around a name in a list: how often it is there, or how many bytes it has.
IDEOGRAPH = re.compile("[\u3000-\u9fff]")
TIMES = re.compile(r"([\d,]+ × )(.+)")
SIZED = re.compile(r"(.+?)( [+−][\d,]+ B)")


def listed(text: str, words: dict[str, str]) -> str:
    """A value by a catalogue: as a message, or as a list of messages, joined as it was."""
    new = _item(text, words)
    if new != text or text in words:
        return new
    for mark in (" + ", ", "):
        parts = text.split(mark)
        for i in range(len(parts) - 1, 0, -1):  # a name may have a comma in it
            head = mark.join(parts[:i])
            if (said := _item(head, words)) != head or i == 1:
                return _joined(mark, said, listed(mark.join(parts[i:]), words))
    return text


def _item(text: str, words: dict[str, str]) -> str:
    if found := TIMES.fullmatch(text):
        return found[1] + translated(found[2], words)
    if found := SIZED.fullmatch(text):
        return translated(found[1], words) + found[2]
    return translated(text, words)


def _joined(mark: str, before: str, after: str) -> str:
    """Two parts with the mark between them, which beside an ideograph is one of its own."""
    wide = {": ": "：", ", ": "、"}
    beside = (before + after)[len(before) - 1 : len(before) + 1]
    return before + (wide.get(mark, mark) if IDEOGRAPH.search(beside) else mark) + after


def _text(value: object) -> str:
    return value if isinstance(value, str) else str(value)


def has_words(text: str) -> bool:
    return bool(re.search(r"[^\W\d_]{2}", text))


def number(value: int | float | str) -> str:
    """A whole number with its thousands parted, or figures that are text, as the reader writes it.

    Example     number(8192) -> "8,192", in Portuguese "8.192"
    """
    text = f"{value:,}" if isinstance(value, (int, float)) else value
    return Said(written(text, language()))


def colon() -> str:
    """What parts a label from its value in the language in use."""
    return "：" if language() == "zh-TW" else ": "


def translated(text: str, words: dict[str, str]) -> str:
    """The text by a catalogue: as a whole, with its numbers taken out, or part by part.

    Formula     "a · 3 layers" is "a" and "{1} layers", joined by the dot it was joined by
    """
    if text in words:
        return words[text]
    pattern, numbers = template(text)
    if pattern in words:
        return filled(words[pattern], numbers)
    parts = re.split(r"( · |: |\n)", text)
    if len(parts) == 1:
        return text
    said = translated(parts[0], words)
    for mark, part in zip(parts[1::2], parts[2::2], strict=True):
        said = _joined(mark, said, translated(part, words))
    return said


def template(text: str) -> tuple[str, list[str]]:
    """A message without its numbers, {1}, {2} … in their places, and the numbers."""
    numbers = NUMBER.findall(text)
    counted = iter(range(1, len(numbers) + 1))
    return NUMBER.sub(lambda _: f"{{{next(counted)}}}", text), numbers


def filled(pattern: str, numbers: list[str]) -> str:
    """A template with its numbers back, in the order its language wants them."""
    return re.sub(r"\{(\d+)\}", lambda found: numbers[int(found[1]) - 1], pattern)


@cache
def catalogue(code: str) -> dict[str, str]:
    """The messages of a language: English, with templates for numbers -> that language."""
    import json  # when asked for: an English command line never does

    path = FOLDER / f"{code}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def _of_notebook(name: str | None) -> str | None:
    """The language that the running notebook's own metadata names."""
    if not name or not name.endswith(".ipynb"):
        return None
    import json

    path = Path(name) if Path(name).exists() else Path(Path(name).name)
    try:
        metadata = json.loads(path.read_text(encoding="utf-8"))["metadata"]
        return metadata.get("memlab", {}).get("language")
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None


def _hear(text: str) -> None:
    """Note what was asked for: a translator needs memlab's words, and not those of the code."""
    import json

    _heard.add(text)
    with Path(str(HEARD)).open("a", encoding="utf-8") as file:
        file.write(json.dumps(text) + "\n")
