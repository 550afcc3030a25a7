"""What the files of trainers say: keys and values as they stand, and the options that they come to.

A table has one entry a key: how it is read, or that it has no bearing. Whatever a table makes is an
option of memlab's own commands, by the name that it has among them; nothing is described twice.
"""

from __future__ import annotations

import re
from difflib import get_close_matches

from ...base.frozen import dataclass
from ..documents import shown

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from typing import Any

    from ...model import Model

    Rule = Callable[["Said", str, Any], None]

OFF: tuple[Any, ...] = (None, False, 0, "", "no", "none", "None", "false")
SLIP = 0.85  # how near a slip is: of other versions there are keys that are like others
FEW = 12  # keys without bearing that are listed; Trainer's own file has 130
REFERENCE = re.compile(r"\$\{([\w.]+)\}")  # OmegaConf's, of another key


@dataclass(frozen=True)
class Trainer:
    """One program's file.

    called      as people call it, with the version whose source was read
    marks       keys by which its file is known: at least one of each group
    keys        how each key is read that says something of memory
    aside       keys that say nothing of it
    off         keys that are described only while they are off
    finish      what the keys come to together
    defaults    what the program takes for a key that is not there
    """

    called: str
    marks: tuple[tuple[str, ...], ...]
    keys: Mapping[str, Rule]
    aside: frozenset[str]
    off: frozenset[str]
    finish: Callable[[Said], None]
    defaults: Mapping[str, Any]


class Said:
    """What files say together.

    path        of the file that is being read, as it was typed
    given       options that were typed beside the files, and win
    ranks       how many processes are launched, if somebody said it
    options     what the files come to: memlab's option -> its value; `of`: the keys that say it
    facts       what several keys, or files, come to only together: formats, devices, adapters
    """

    def __init__(self, given: Collection[str], model_of: Callable[[str], Model]) -> None:
        self.given, self._model_of = given, model_of
        self.path = ""
        self.config: dict[str, Any] = {}
        self.trainer: Trainer | None = None
        self.taken: dict[str, None] = {}  # keys whose default was asked for
        self.model: str | None = None
        self.ranks: int | None = None
        self.options: dict[str, Any] = {}
        self.of: dict[str, list[str]] = {}
        self.facts: dict[str, Any] = {}
        self.notes: list[str] = []
        self.problems: list[str] = []
        self.lines: list[str] = []

    def read(self, path: str, config: dict[str, Any], trainer: Trainer) -> None:
        """Take one file in: every key, and all that is wrong with any of them."""
        self.path, self.config, self.trainer = path, config, trainer
        read: list[str] = []
        aside: list[str] = []
        unknown: list[str] = []
        self.taken = {}
        for key, value in config.items():
            if key in trainer.keys:
                read.append(key)
            elif key in trainer.aside or (key in trainer.off and value in OFF + ([], {})):
                aside.append(key)
            elif key in trainer.off:
                self.problem(f"{key}: {shown(value)} is not described; leave it off")
            elif near := get_close_matches(key, trainer.keys, 1, SLIP):
                self.problem(f"{key}: not known here; did you mean {near[0]}?")
            else:
                unknown.append(key)
        for key, rule in trainer.keys.items():
            value = self._value(key) if rule is later else self.value(key)
            if value is not None:
                try:
                    rule(self, key, value)
                except (ValueError, TypeError) as error:
                    self.problem(f"{key}: {error}")
        trainer.finish(self)
        line = f"{path}, {trainer.called}: read {', '.join(read)}"
        if self.taken:
            defaults = [f"{key} {shown(trainer.defaults[key])}" for key in self.taken]
            line += f"; its defaults: {', '.join(defaults)}"
        self.lines.append(line)
        if aside:
            more = [f"and {len(aside) - FEW} others"] * (len(aside) > FEW + 1)
            few = aside[:FEW] if more else aside
            self.lines.append(f"no bearing on memory: {', '.join([*few, *more])}")
        if unknown:
            self.lines.append(f"not known here, not counted: {', '.join(unknown)}")

    def _value(self, key: str) -> Any:
        """The value of a key, behind references to others; None where there is none."""
        value = self.config.get(key)
        for _ in range(4):
            found = REFERENCE.fullmatch(value) if isinstance(value, str) else None
            if not found:
                break
            value = self.config
            for name in found[1].split("."):
                value = value.get(name) if isinstance(value, dict) else None
        return value

    def value(self, key: str) -> Any:
        """The same, or the trainer's default."""
        value = self._value(key)
        if value is None and self.trainer is not None and key in self.trainer.defaults:
            self.taken[key] = None
            value = self.trainer.defaults[key]
        return value

    def put(self, option: str, value: Any, *keys: str) -> None:
        """Say an option, where neither the command line nor an earlier file has."""
        if option not in self.given and option not in self.options:
            self.options[option] = value
            self.of[option] = [key if ": " in key else self.told(key) for key in keys]

    def told(self, key: str) -> str:
        """A key and its value, as the file has them."""
        return f"{key}: {shown(self.value(key))}"

    def note(self, words: str) -> None:
        """Say beside the answer what is counted otherwise."""
        self.notes.append(words)

    def problem(self, words: str) -> None:
        """Refuse the file for this too, when all of it has been read."""
        self.problems.append(words)

    def shape(self) -> Model:
        """The model that the files, or the command line, name.

        Raises      ValueError where none is named, or none is found
        """
        if self.model is None:
            raise ValueError("names of layers need a model, which is to be named first")
        return self._model_of(self.model)


def later(said: Said, key: str, value: Any) -> None:
    """A key that `finish` reads."""
