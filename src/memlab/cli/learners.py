"""Learners and their notebooks: what each made of the exercises, chapter by chapter.

A chapter is known by the ids of its exercises, so that a file may have any name.
"""

from __future__ import annotations

import os
import re

from ..base.frozen import dataclass
from ..base.message import Listed, Localized, Message
from ..base.versions import VERSION
from ..exercises import ids
from ..files import learner
from ..files.learner import OPEN, SOLVED, STATES, STOPPED, Answer

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

NO_EXERCISE = "no exercise is in it"
NO_NOTEBOOK = "no notebook is in it"
UNKNOWN = "not an exercise of memlab {1}: {2}; the notebook is of another edition"
ABSENT = "not in the notebook: {1}; it is of another edition, or cells were deleted"
COPIES = "an earlier notebook has this chapter too: of each exercise the best answer counts"
LATE = "a cell ran for more than {1} s; what comes after it was not run"
DIED = "its kernel died: the system may have had no memory left"
NOT_STARTED = "it was not run, for the kernel python3 does not start: {1}"
SENTENCES = (NO_EXERCISE, NO_NOTEBOOK, UNKNOWN, ABSENT, COPIES, LATE, DIED, NOT_STARTED)


@dataclass(frozen=True)
class Note:
    """What to know about a file; `read` is False where the file could not be read."""

    file: str
    what: str
    read: bool = True


@dataclass(frozen=True)
class Chapter:
    """What one learner made of a chapter.

    answers     one for each of its exercises
    files       where they stand
    """

    label: str
    answers: tuple[Answer, ...]
    files: tuple[str, ...]

    def numbers(self, *states: str) -> str:
        """The exercises in one of these states, by their last numbers."""
        found = [one for one in self.answers if one.state in states]
        return Listed(", ", map(_number, found)) if found else ""

    @property
    def solved(self) -> int:
        return sum(one.state == SOLVED for one in self.answers)


@dataclass(frozen=True)
class Person:
    """A learner: chapters by label, and what is odd about the files."""

    name: str
    chapters: dict[str, Chapter]
    notes: tuple[Note, ...]


def _is_notebook(name: str) -> bool:
    return name.endswith(".ipynb")


def notebooks(paths: Iterable[str], wanted: Callable[[str], bool] = _is_notebook) -> Iterator[str]:
    """Those that are named, and those in folders, without what Jupyter keeps hidden.

    wanted      by the name of a file; of other files than notebooks, too
    """
    for path in paths:
        if not os.path.isdir(path):
            yield path
            continue
        for folder, inner, files in os.walk(path):
            inner[:] = sorted(name for name in inner if name[:1] != ".")
            for name in sorted(files):
                if wanted(name) and name[:1] != ".":
                    yield os.path.normpath(os.path.join(folder, name))


def room(
    folder: str,
    wanted: Callable[[str], bool] = _is_notebook,
    named: Callable[[str], str] | None = None,
) -> dict[str, list[str]]:
    """Learner -> notebooks: a folder of a learner, or what a file is called beside its chapter.

    named       the learner in the name of a file: `name_in`, unless it is said

    Raises      OSError for what is no folder
    """
    found: dict[str, list[str]] = {}
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        if entry.name[:1] == ".":
            continue
        if entry.is_dir():
            found.setdefault(entry.name, []).extend(notebooks([entry.path], wanted))
        elif wanted(entry.name):
            name = (named or name_in)(os.path.splitext(entry.name)[0])
            found.setdefault(name, []).append(entry.path)
    return dict(sorted(found.items(), key=lambda pair: pair[0].casefold()))


def name_in(stem: str) -> str:
    """The learner in the name of a file.

    Example     name_in("05_activations-maria") -> "maria"
    """
    left = re.sub(r"\s*\(\d+\)$", "", stem)  # as browsers call a second download
    for name in sorted(_known(), key=len, reverse=True):
        words = re.escape(name).replace(r"\-", "[-_ ]")
        word = rf"(?<![^\W_])(\d\d[-_ ])?{words}(?![^\W_])"
        left, count = re.subn(word, "", left, flags=re.IGNORECASE)
        if count:
            break
    return left.strip(" -_.()") or stem


def person(name: str, files: list[str], load: Callable[[str], tuple[Any, str]]) -> Person:
    """What a learner's notebooks say, chapter by chapter.

    load        reads a file: its content, and a note about it or nothing
    """
    known = _known()
    notes = [] if files else [Note(name, NO_NOTEBOOK)]
    answers: dict[str, dict[str, Answer]] = {}
    places: dict[str, list[str]] = {}
    for file in files:
        try:
            content, what = load(file)
        except OSError as error:
            notes.append(Note(file, error.strerror or str(error), False))
            continue
        except ValueError as error:
            notes.append(Note(file, error.args[0], False))
            continue
        attempt = learner.read(content)
        notes += [Note(file, note) for note in (what, *attempt.notes) if note]
        if not attempt.answers and len(files) == 1:
            notes.append(Note(file, NO_EXERCISE))
        there = {one.exercise: one for one in attempt.answers}
        if strange := [each for each in there if each not in known.get(label(each), ())]:
            notes.append(Note(file, Message(UNKNOWN, Localized(VERSION), listed(strange))))
        for chapter in {label(each): None for each in there if each not in strange}:
            if absent := [each for each in known[chapter] if each not in there]:
                notes.append(Note(file, Message(ABSENT, listed(absent))))
            if chapter in places:
                notes.append(Note(file, COPIES))
            places.setdefault(chapter, []).append(file)
            kept = answers.setdefault(chapter, {})
            for each in known[chapter]:
                pair = [there.get(each, Answer(each, OPEN)), *filter(None, [kept.get(each)])]
                kept[each] = min(pair, key=lambda one: STATES.index(one.state))
    made = {
        chapter: Chapter(chapter, tuple(kept.values()), tuple(places[chapter]))
        for chapter, kept in answers.items()
    }
    return Person(name, made, tuple(notes))


def in_order(people: list[Person]) -> list[str]:
    """The chapters that anybody has, as the book numbers its files; those of other names last."""
    numbers: dict[str, int] = {}
    for each in people:
        for name, chapter in each.chapters.items():
            words = re.escape(name).replace(r"\-", "[-_]")
            for file in chapter.files:
                found = re.search(rf"(?<!\d)(\d\d)[-_]{words}", os.path.basename(file))
                number = int(found[1]) if found else 100
                numbers[name] = min(number, numbers.get(name, number))
    return sorted(numbers, key=lambda name: (numbers[name], name))


def label(exercise: str) -> str:
    """The chapter's label in an id.

    Example     label("ex-kv-cache-2") -> "kv-cache"
    """
    return exercise.removeprefix("ex-").rpartition("-")[0]


def listed(names: Iterable[str]) -> str:
    """Names of exercises or files, which no language says otherwise."""
    return Listed(", ", map(Localized, names))


def _known() -> dict[str, list[str]]:
    """The exercises of each chapter, by its label."""
    found: dict[str, list[str]] = {}
    for name in ids():
        found.setdefault(label(name), []).append(name)
    return found


def _number(one: Answer) -> str:
    number = one.exercise.rpartition("-")[2]
    return f"{number} ({one.said})" if one.state == STOPPED else number
