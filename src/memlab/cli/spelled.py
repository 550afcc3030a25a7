"""The words of a command line, other programs' spellings of them as they are known here."""

from __future__ import annotations

import os

from .brought import taken

DOUBLE = "nf4-dq"
TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

    from .parser import Parser


def as_known(parser: Parser, words: list[str], told: list[str]) -> list[str]:
    """The words of a command line, those that are other spellings as they are known here.

    told        gets a line where a model is named by a repository
    """
    made: list[str] = []
    rest = list(reversed(words))
    while rest:
        word = rest.pop()
        flag, joined, value = word.partition("=")
        action = parser._option_string_actions.get(flag)
        if word == "--":
            return [*made, word, *reversed(rest)]
        if action is None:
            made += _named(parser, word, words, told) if made and word[:1] != "-" else [word]
        elif action.nargs == 0 or not joined and (not rest or rest[-1][:1] == "-"):
            made.append(word)
        elif action.dest == "teacher":
            made += [flag, *_named(parser, value if joined else rest.pop(), words, told)[:1]]
        else:
            here, *more = _spelled(action, value if joined else rest.pop(), words)
            made += [*([f"{flag}={here}"] if joined else [flag, here]), *more]
    return made


def _spelled(action: Any, value: str, words: list[str]) -> list[str]:
    """A value as it is known here, and the option that it says beside its own."""
    here, beside = taken(action.dest, value), ""
    if here != value:  # what was pasted may have flags in it
        here, _, beside = here.partition(" --")
    if not beside and here == "adamw" != value.lower() and "--loop" in words:
        beside = "optimizer-impl foreach"  # a trainer takes the fused one by itself
    said = [word.partition("=")[0] for word in words]
    more = f"--{beside}".split() if beside else []
    if more and more[0] in said:
        return [value]
    if "--tokens" not in said and words[0] != "fit":
        more = []  # of a step, and none is asked about
    for known in map(str, action.choices or ()):
        here = known if known.lower() == here.lower().replace("-", "_") else here
    return [here, *more]


def _named(parser: Parser, word: str, words: list[str], told: list[str]) -> list[str]:
    """A model by its repository's name: the preset, and how an engine finds its weights."""
    from ..model.hub_names import found

    if "/" not in word or os.path.exists(word) or (repository := found(word)) is None:
        return [word]
    said = {each.partition("=")[0] for each in words}
    flag = "--quantization"
    if repository.stored == DOUBLE and "--lora-rank" in said:  # the base of the adapters
        flag = "--lora-base"
    if repository.stored == "":
        more = []
    elif repository.stored is None or flag not in parser._option_string_actions:
        parser.error(repository.refusal(word))
    else:
        more = [] if flag in said else [flag, repository.stored]
    told.append(repository.told(word))
    return [repository.preset, *more]
