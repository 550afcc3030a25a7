"""`memlab check --capstone`: a learner's scripts rehearsed and held against the capstone's cases.

A script runs in a process of its own, on tensors without values, and nowhere else.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

from ..base.frozen import dataclass
from ..base.grid import Grid
from ..base.message import Localized, Message
from ..base.messages import colon, say, told
from ..capstone import cases, judged
from ..capstone import judge as sentences
from ..capstone.cases import script
from ..capstone.judge import stated
from .document import document
from .learners import Note

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from ..capstone.judge import Judged, Rule
    from .check_file import Part

FILE = re.compile(r"(?i)capstone[-_ ]?(\d{1,2})(?!\d)")
FULL = 10  # points of a case
KEPT, BROKEN = "✓", "✗"
RULE, RUN, CASE, POINTS = "rule", "what was run", "case", "points"
LEARNER, LEARNERS, OPEN_RULE = "learner", "learners", "rule not kept"
ONE = "case {1}: {2} on {3}, {4} of 10 points"
IN_ALL = "points: {1} of {2}"
NO_SCRIPT = "no script of the capstone is in it"
NO_NUMBER = "its name says which case it is: capstone_03.py"
NO_CASE = "there is no case {1}; the last one is {2}"
NO_PYTHON = "it is no Python: line {1}"
SENTENCES = (
    *(RULE, RUN, CASE, POINTS, LEARNER, LEARNERS, OPEN_RULE, ONE, IN_ALL),
    *(NO_SCRIPT, NO_NUMBER, NO_CASE, NO_PYTHON, *sentences.SENTENCES),
)


@dataclass(frozen=True)
class Entry:
    """A script that a learner handed in, and what the judge says of it."""

    number: int
    file: str
    judged: Judged


@dataclass(frozen=True)
class Person:
    """A learner: of each case the script with most points, and what is odd about the files."""

    name: str
    entries: dict[int, Entry]
    notes: tuple[Note, ...]

    @property
    def points(self) -> int:
        return sum(each.judged.points for each in self.entries.values())


def wanted(name: str) -> bool:
    """Whether a file of a folder is a script of the capstone."""
    return name.endswith(".py") and FILE.search(name) is not None


def name_in(stem: str) -> str:
    """The learner in the name of a file.

    Example     name_in("capstone_03-maria") -> "maria"
    """
    return FILE.sub("", re.sub(r"\s*\(\d+\)$", "", stem)).strip(" -_.()") or stem


def write_bases(folder: str) -> str:
    """The scripts that the cases begin with, of those that are not there yet.

    Raises      ValueError without torch, OSError
    """
    from ..base.extras import missing

    os.makedirs(folder, exist_ok=True)
    made = []
    for case in cases().values():
        path = os.path.join(folder, case.name)
        if os.path.exists(path):  # a learner's own by now
            continue
        try:
            text = script(case)
        except ModuleNotFoundError as error:
            raise ValueError(missing("the capstone's scripts", error, "torch")) from error
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        made.append(path)
    return "\n".join(made) or f"{folder} has all of them already"


def person(name: str, files: list[str]) -> Person:
    """Judge a learner's scripts."""
    notes = [] if files else [Note(name, NO_SCRIPT)]
    entries: dict[int, Entry] = {}
    for file in files:
        try:
            entry = _entry(file)
        except OSError as error:
            notes.append(Note(file, error.strerror or str(error), False))
        except SyntaxError as error:
            notes.append(Note(file, Message(NO_PYTHON, error.lineno or 1), False))
        except ValueError as error:
            notes.append(Note(file, error.args[0], False))
        else:
            before = entries.get(entry.number)
            if before is None or before.judged.points <= entry.judged.points:
                entries[entry.number] = entry
    return Person(name, dict(sorted(entries.items())), tuple(notes))


def _entry(file: str) -> Entry:
    found = FILE.search(os.path.basename(file))
    if found is None:
        raise ValueError(NO_NUMBER)
    number = int(found[1])
    if number not in cases():
        raise ValueError(Message(NO_CASE, number, max(cases())))
    with open(file, "rb") as source:  # Python knows in which encoding
        words = stated(source.read())
    case = cases()[number]
    seen = None if case.cannot and words["LEAST"] else _observed(file, number)
    return Entry(number, file, judged(case, seen, words))


def _observed(file: str, number: int) -> dict[str, Any]:
    """What a script ran, by memlab.capstone.observed in a process of its own.

    Raises      ValueError where that process ends without an answer
    """
    command = [sys.executable, "-W", "ignore", "-m", "memlab.capstone.observed", file, str(number)]
    path = os.pathsep.join(filter(None, sys.path))
    done = subprocess.run(
        command, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": path}
    )
    try:
        seen: dict[str, Any] = json.loads(done.stdout.strip().rpartition("\n")[2])
    except ValueError:
        last = done.stderr.strip().rpartition("\n")[2]
        return {"failure": last or f"exit status {done.returncode}"}
    return seen


def parts(people: list[Person], *, room: bool) -> list[Part]:
    """The answer: tables, sentences between them, and a list of notes."""
    made = _room(people) if room else _alone(people[0])
    notes = [note for each in people for note in each.notes]
    if notes:
        made.append([f"{note.file}{colon()}{say(note.what)}" for note in notes])
    return made


def _alone(one: Person) -> list[Part]:
    made: list[Part] = []
    for entry in one.entries.values():
        case = cases()[entry.number]
        names = map(Localized, (case.model, case.gpu))
        made.append(told(ONE, entry.number, *names, entry.judged.points))
        rows = [[_mark(rule), rule.name, rule.said] for rule in _all_of(entry)]
        made.append(Grid([["", RULE, RUN], *rows]))
        if entry.judged.advice:
            made.append([say(each) for each in entry.judged.advice])
    if len(one.entries) > 1:
        made.append(told(IN_ALL, one.points, FULL * len(one.entries)))
    return made


def _room(people: list[Person]) -> list[Part]:
    numbers = sorted({number for each in people for number in each.entries})
    rows = [[LEARNER, *(Localized(f"{number}") for number in numbers), POINTS]]
    lost: dict[tuple[int, str], int] = {}
    for each in people:
        earned = [each.entries[n].judged.points if n in each.entries else "" for n in numbers]
        rows.append([Localized(each.name), *map(str, earned), str(each.points)])
        for number, entry in each.entries.items():
            for rule in entry.judged.rules:
                if not rule.kept:
                    lost[number, rule.name] = lost.get((number, rule.name), 0) + 1
    made: list[Part] = [Grid(rows)]
    shared = [(count, *key) for key, count in lost.items() if count > 1]
    if shared:
        shared.sort(key=lambda row: (-row[0], row[1]))
        made.append(
            Grid([[LEARNERS, CASE, OPEN_RULE], *([f"{n}", f"{c}", r] for n, c, r in shared)])
        )
    return made


def _all_of(entry: Entry) -> Iterable[Rule]:
    return (*entry.judged.rules, *entry.judged.statements)


def _mark(rule: Rule) -> str:
    return KEPT if rule.kept else BROKEN


def solved(people: list[Person]) -> bool:
    """Whether every script that is there solves its case, and every file could be read."""
    entries = [entry for each in people for entry in each.entries.values()]
    read = all(note.read for each in people for note in each.notes)
    return bool(entries) and read and all(entry.judged.solved for entry in entries)


def as_json(people: list[Person]) -> str:
    """The same for programs, in English."""

    def entry(one: Entry) -> dict[str, Any]:
        rules = [{"rule": rule.name, "kept": rule.kept, "said": rule.said} for rule in _all_of(one)]
        said = {"case": one.number, "file": one.file, "points": one.judged.points}
        said |= {"solved": one.judged.solved, "tight": one.judged.tight, "rules": rules}
        return said | {"advice": [*one.judged.advice]}

    rows = [
        {
            "learner": each.name or None,
            "points": each.points,
            "cases": [*map(entry, each.entries.values())],
            "notes": [
                {"file": note.file, "note": note.what, "read": note.read} for note in each.notes
            ],
        }
        for each in people
    ]
    return document("check --capstone", learners=rows)
