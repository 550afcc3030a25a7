"""What memlab prints, in the reader's language: headings of tables, labels of figures, hints.

The words come from the package's `locale/<language>.json`, which tools/i18n makes from the
catalogues of the book; memlab.base.message says what of a text is looked up there. What no
catalogue has stays English, and nothing else in a result depends on the language, but how a number
is written.
"""

import os
from functools import cache

from .message import CONTEXT as CONTEXT
from .message import PLACE as PLACE
from .message import Listed as Listed
from .message import Localized as Localized
from .message import Message as Message
from .message import asked, rendered
from .message import has_words as has_words

FOLDER = os.path.join(os.path.dirname(os.path.dirname(__file__)), "locale")
ENGLISH = "en"
_chosen: list[str] = []
_heard: set[str] = set()
HEARD = os.environ.get("MEMLAB_HEARD")  # a file for all that is asked for: tools/notebooks.py


def languages() -> list[str]:
    """The languages memlab can print in, English first."""
    return [ENGLISH, *sorted(n[:-5] for n in os.listdir(FOLDER) if n.endswith(".json"))]


def called(name: str) -> str | None:
    """The language that a name stands for, as an environment has it; None for one without words.

    Example     called("pt_BR.UTF-8") -> "pt-BR"
    """
    wanted = name.partition(".")[0].partition("@")[0].replace("_", "-").lower()
    return next((code for code in languages() if code.lower() == wanted), None)


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
        _chosen.append(called(asked or ENGLISH) or ENGLISH)
    return _chosen[0]


def say(text: str, context: str = "") -> str:
    """The text in the language in use, or as it is where no translation is known.

    context     of a cell, the first heading of its table: a catalogue may have a word for this
                place alone, where a word has two senses
    """
    if isinstance(text, Localized):
        return text
    if HEARD:
        _hear(text)
    if language() == ENGLISH:
        return text
    return Localized(rendered(text, catalogue(language()), language(), context))


def told(pattern: str, *values: object) -> str:
    """A message with its values, in the language in use."""
    return say(Message(pattern, *values))


def number(value: int | float | str) -> str:
    """A whole number with its thousands parted, or figures that are text, as the reader writes it.

    Example     number(8192) -> "8,192", in Portuguese "8.192"
    """
    from .numerals import written

    text = f"{value:,}" if isinstance(value, (int, float)) else value
    return Localized(written(text, language()))


def colon() -> str:
    """What parts a label from its value in the language in use."""
    return "：" if language() == "zh-TW" else ": "


@cache
def catalogue(code: str) -> dict[str, str]:
    """The messages of a language: English -> that language."""
    import json  # when asked for: an English command line never does

    path = os.path.join(FOLDER, f"{code}.json")
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def _of_notebook(name: str | None) -> str | None:
    """The language that the running notebook's own metadata names."""
    if not name or not name.endswith(".ipynb"):
        return None
    import json

    path = name if os.path.exists(name) else os.path.basename(name)
    try:
        with open(path, encoding="utf-8") as file:
            metadata = json.load(file)["metadata"]
        return metadata.get("memlab", {}).get("language")
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None


def _hear(told: object) -> None:
    """Note what was asked for: a translator needs memlab's words, and not those of the code."""
    import json

    for text in asked(told):
        if text not in _heard:
            _heard.add(text)
            with open(str(HEARD), "a", encoding="utf-8") as file:
                file.write(json.dumps(text) + "\n")
