"""What memlab prints, in the reader's language: headings of tables, labels of figures, hints.

The words come from the package's `locale/<language>.json`, which tools/i18n makes from the
catalogues of the book. Of a message (memlab.base.message) the pattern is looked up, and each value.
A plain text is looked up as a whole, or with its numbers taken out: "peak after 3 layers" as "peak
after {1} layers". What no catalogue has stays English, and nothing else in a result depends on the
language, but how a number is written.
"""

import os
import re
from functools import cache
from pathlib import Path

from .message import PLACE as PLACE
from .message import Listed as Listed
from .message import Message as Message
from .numerals import written

FOLDER = Path(__file__).parent.parent / "locale"
ENGLISH = "en"
# A figure with its unit is one piece, printed alike in every language; the 16 of bf16 is none.
NUMBER = re.compile(
    r"(?<![\w.-])[-+−~≈]?\d+(?:[.,]\d+)*(?: ?(?:[KMGT]i?B\b|B\b|%|×|x\b))?(?![\w-])"
)

CONTEXT = "\x04"  # between a context and its message, as gettext has it

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


def say(text: str, context: str = "") -> str:
    """The text in the language in use, or as it is where no translation is known.

    context     of a cell, the first heading of its table: a catalogue may have a word for this
                place alone, where a word has two senses
    """
    if isinstance(text, Said):
        return text
    if HEARD:
        _hear(text)
    if language() == ENGLISH:
        return text
    return Said(put(text, catalogue(language()), language(), context))


def told(pattern: str, *values: object) -> str:
    """A message with its values, in the language in use."""
    return say(Message(pattern, *values))


def put(text: object, words: dict[str, str], code: str, context: str = "") -> str:
    """A text by the catalogue of a language: English where it is not there.

    A message's pattern is looked up, and each of its values by itself; any other text as a whole.
    """
    if isinstance(text, Said):
        return text
    if isinstance(text, Listed):
        first, *rest = [put(each, words, code) for each in text.values] or [""]
        for each in rest:
            first = _joined(text.pattern, first, each)
        return first
    if isinstance(text, Message):
        pattern, values = text.pattern, text.values
        if pattern not in words and has_words(PLACE.sub(" ", pattern)):
            return str(text)
        parts = PLACE.split(words.get(pattern, pattern))
        return "".join(
            put(values[part], words, code) if i % 2 else written(part, code)
            for i, part in enumerate(parts)
        )
    plain = str(text)
    return written(words.get(f"{context}{CONTEXT}{plain}") or translated(plain, words), code)


IDEOGRAPH = re.compile("[\u3000-\u9fff]")


def _joined(mark: str, before: str, after: str) -> str:
    """Two parts with the mark between them, which beside an ideograph is one of its own."""
    beside = (before + after)[len(before) - 1 : len(before) + 1]
    return before + ("、" if mark == ", " and IDEOGRAPH.search(beside) else mark) + after


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
    """A text by a catalogue: as a whole, or with its numbers taken out."""
    if text in words:
        return words[text]
    pattern, numbers = template(text)
    return filled(words[pattern], numbers) if pattern in words else text


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


def _hear(text: object) -> None:
    """Note what was asked for: a translator needs memlab's words, and not those of the code.

    The patterns of messages are known beforehand; in a language they tell what a page is made of.
    """
    import json

    if isinstance(text, Message):
        if language() != ENGLISH:
            many = isinstance(text, Listed)
            for each in text.values if many else [text.pattern, *text.values.values()]:
                _hear(each if isinstance(each, str) else str(each))
    elif text not in _heard:
        _heard.add(str(text))
        with Path(str(HEARD)).open("a", encoding="utf-8") as file:
            file.write(json.dumps(text) + "\n")
