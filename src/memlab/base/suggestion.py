"""A name as people type it: capitals, and - or _, do not matter; a slip is told what is near."""

from __future__ import annotations

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Iterable


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The names that are near a word, as a question; nothing if none is."""
    from difflib import get_close_matches  # slow to import, and only needed here

    near = get_close_matches(word, list(known))
    return f"did you mean {' or '.join(near)}? " if near else ""


def spelled(what: str, word: str, known: Iterable[str], more: str = "") -> str:
    """The known name that a word stands for.

    Example     spelled("recipe", "BNB-AdamW8bit", NAMED) -> "bnb_adamw8bit"
    more        what the list of names ends on, for those that are not in it
    Raises      ValueError for a word that is none of them, with those that come close
    """
    names = {_folded(name): name for name in known}
    if _folded(word) in names:
        return names[_folded(word)]
    near = did_you_mean(_folded(word), names.values())
    raise ValueError(f"unknown {what} {word!r}; {near}known: {', '.join(names.values())}{more}")


def _folded(name: str) -> str:
    return name.lower().replace("-", "_")
