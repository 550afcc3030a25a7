"""`memlab check`: which exercises a learner's notebooks solve, and which slips are likely.

Files are read and nothing is sent anywhere. --class makes the table of a room: a row a learner.
Long, because notebooks and the capstone's scripts are asked for in one way.
"""

from __future__ import annotations

import argparse

from ..base.grid import Grid
from ..base.message import Localized, Message, rendered
from ..base.messages import catalogue, colon, languages, say, told
from ..exercises import hints, judge
from ..files import learner
from ..files.learner import NOT_RUN, OPEN, SOLVED, STOPPED, WRONG, Answer
from . import check_capstone, check_file, learners
from .document import document
from .language import add_language, spoken
from .learners import Chapter, Person

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .check_file import Part

ABOUT = """\
For one learner a row a chapter; with --class a row a learner, solved of all in
each chapter, and below it the slips that several made, most frequent first. A
chapter is known by the ids of its exercises, so that its file may have any name
and any language of the book. The book's own solutions do not count.

not run      no output is stored, or the cell was changed after it ran
likely slip  the hint that the exercise has for this answer

What is no notebook, is broken or is of another edition is named below, and the
others are read. The exit status is 0 where every exercise of these chapters is
solved, 1 where one is not or a file could not be read, 2 where there is no
notebook at all.

With --capstone the files are the capstone's scripts, capstone_01.py to
capstone_10.py. Each is rehearsed in a process of its own, which runs it on
tensors without values, and what it ran is held against the rules of its case."""
HEADINGS = ("chapter", SOLVED, WRONG, OPEN, NOT_RUN)
SLIP, LEARNER, LEARNERS, EXERCISE = "likely slip", "learner", "learners", "exercise"
NO_KNOWN_SLIP = "no known slip; the hint was: {1}"
IN_ALL = "solved: {1} of {2} exercises"
NOT_SHARED = "No slip was made by several learners."
SENTENCES = (
    *(*HEADINGS, SLIP, LEARNER, LEARNERS, EXERCISE),
    *(NO_KNOWN_SLIP, IN_ALL, NOT_SHARED, *learner.SENTENCES, *learners.SENTENCES),
    *check_capstone.SENTENCES,
)
OUT = (".html", ".md")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Notebooks and folders, or a room; or scripts of the capstone."""
    parser.usage = "memlab check [NOTEBOOK|FOLDER ...] [OPTIONS]"
    parser.epilog = ABOUT
    words = "notebooks, or folders of them (default: this folder)"
    parser.add_argument("paths", nargs="*", metavar="NOTEBOOK|FOLDER", help=words)
    words = "the table of a room: each folder in FOLDER is a learner's, and so is each notebook "
    words += "there, by what its name says beside the chapter"
    parser.add_argument("--class", dest="room", metavar="FOLDER", help=words)
    words = "run a copy of each notebook first: this executes what learners wrote"
    parser.add_argument("--run", dest="execute", action="store_true", help=words)
    words = "judge the capstone's scripts instead, rehearsed: this executes them without values"
    parser.add_argument("--capstone", action="store_true", help=words)
    words = "write the scripts that the capstone's cases begin with, and judge nothing"
    parser.add_argument("--begin", metavar="FOLDER", help=words)
    words = "write the answer there too, as a page or as Markdown"
    parser.add_argument("--out", metavar="FILE.html|FILE.md", help=words)
    add_language(parser)
    parser.add_argument("--json", action="store_true", help="print JSON for programs")


def run(options: argparse.Namespace) -> tuple[str, int]:
    """What the command prints, and 1 where something is not solved or could not be read.

    Raises      ValueError where there is no notebook; OSError
    """
    if options.room is not None and options.paths:
        raise ValueError(f"--class {options.room} reads a whole room; leave {options.paths[0]} out")
    if options.out is not None and not options.out.endswith(OUT):
        raise ValueError(f"--out {options.out}: the file's name ends in {' or '.join(OUT)}")
    if options.begin is not None:
        return _begin(options)
    if options.capstone:
        return _capstone(options)
    if options.room is None:
        groups = {"": list(learners.notebooks(options.paths or ["."]))}
    else:
        groups = learners.room(options.room)
    if not any(groups.values()):
        where = options.room or " ".join(options.paths) or "this folder"
        raise ValueError(f"{where}: no notebook (*.ipynb) is there")
    load = _runner() if options.execute else lambda file: (learner.load(file), "")
    people = [learners.person(name, files, load) for name, files in groups.items()]
    order = learners.in_order(people)
    with spoken(options.lang):
        parts = _parts(people, order, room=options.room is not None)
        said = _said(options, parts) or _json(people, order)
    return said, 0 if _all_solved(people) else 1


def _said(options: argparse.Namespace, parts: list[Part]) -> str:
    """What is printed, unless that is JSON; and the file of --out is written."""
    if options.out is not None:
        form = check_file.as_page if options.out.endswith(OUT[0]) else check_file.as_markdown
        with open(options.out, "w", encoding="utf-8") as file:
            file.write(form(parts))
    return "" if options.json else check_file.as_lines(parts)


def _begin(options: argparse.Namespace) -> tuple[str, int]:
    others = {"paths": options.paths, "--class": options.room, "--run": options.execute}
    others |= {"--out": options.out, "--lang": options.lang, "--json": options.json}
    for name, value in others.items():
        if value:
            raise ValueError(
                f"--begin {options.begin} writes scripts and judges nothing: no {name}"
            )
    return check_capstone.write_bases(options.begin), 0


def _capstone(options: argparse.Namespace) -> tuple[str, int]:
    """The same of scripts."""
    if options.execute:
        raise ValueError("--run runs notebooks; --capstone rehearses its scripts in any case")
    if options.room is None:
        files = list(learners.notebooks(options.paths or ["."], check_capstone.wanted))
        groups = {"": files}
    else:
        groups = learners.room(options.room, check_capstone.wanted, check_capstone.name_in)
    if not any(groups.values()):
        where = options.room or " ".join(options.paths) or "this folder"
        raise ValueError(f"{where}: no script of the capstone (capstone_01.py) is there")
    people = [check_capstone.person(name, files) for name, files in groups.items()]
    with spoken(options.lang):
        parts = check_capstone.parts(people, room=options.room is not None)
        said = _said(options, parts) or check_capstone.as_json(people)
    return said, 0 if check_capstone.solved(people) else 1


def _runner() -> Callable[[str], tuple[Any, str]]:
    """What runs a notebook.

    Raises      ValueError where what it needs is not installed
    """
    try:
        from .check_run import executed
    except ModuleNotFoundError as error:
        need = f"running notebooks needs {error.name}: pip install nbclient ipykernel"
        raise ValueError(need) from error
    return executed


def _all_solved(people: list[Person]) -> bool:
    chapters = [chapter for each in people for chapter in each.chapters.values()]
    solved = all(chapter.solved == len(chapter.answers) for chapter in chapters)
    return bool(chapters) and solved and all(note.read for each in people for note in each.notes)


def _parts(people: list[Person], order: list[str], *, room: bool) -> list[Part]:
    """The answer: tables, sentences between them, and a list of notes."""
    parts: list[Part] = []
    wrong = _slips(people, order)
    if room:
        rows = [[LEARNER, *map(Localized, order)]]
        for each in people:
            rows.append([Localized(each.name), *(_cell(each.chapters.get(it)) for it in order)])
        parts.append(Grid(rows))
        shared = sorted((one for one in wrong if len(one[3]) > 1), key=lambda one: -len(one[3]))
        slips = [[str(len(names)), Localized(name), said] for name, _, said, names in shared]
        parts.append(Grid([[LEARNERS, EXERCISE, SLIP], *slips]) if slips else say(NOT_SHARED))
    elif order:
        chapters = [people[0].chapters[label] for label in order]
        parts.append(Grid([list(HEADINGS), *map(_row, chapters)]))
        counts = [sum(each.solved for each in chapters), sum(len(e.answers) for e in chapters)]
        parts.append(told(IN_ALL, *counts))
        if wrong:
            slips = [[Localized(name), said] for name, _, said, _ in wrong]
            parts.append(Grid([[EXERCISE, SLIP], *slips]))
    notes = [note for each in people for note in each.notes]
    if notes:
        parts.append([f"{note.file}{colon()}{say(note.what)}" for note in notes])
    return parts


def _row(chapter: Chapter) -> list[str]:
    states = [chapter.numbers(*each) for each in ((WRONG, STOPPED), (OPEN,), (NOT_RUN,))]
    name = Localized(f"{chapter.label} ({', '.join(chapter.files)})")
    return [name, _cell(chapter), *states]


def _cell(chapter: Chapter | None) -> str:
    if chapter is None:
        return ""
    if all(one.state == NOT_RUN for one in chapter.answers):
        return NOT_RUN
    return f"{chapter.solved}/{len(chapter.answers)}"


def _slips(people: list[Person], order: list[str]) -> list[tuple[str, str, str, list[str]]]:
    """Each slip in the book's order: exercise, in English, what to say of it, who made it."""
    known = hints()
    found: dict[tuple[str, str], tuple[str, list[str]]] = {}
    for label in order:
        for person in people:
            for one in person.chapters[label].answers if label in person.chapters else ():
                if one.state == WRONG:
                    sentence, said = _slip(one, known[one.exercise])
                    found.setdefault((one.exercise, sentence), (said, []))[1].append(person.name)
    places = {name: place for place, name in enumerate(order)}
    rows = [(name, sentence, *rest) for (name, sentence), rest in found.items()]
    return sorted(rows, key=lambda row: (places[learners.label(row[0])], row[0]))


def _slip(one: Answer, known: list[str]) -> tuple[str, str]:
    """The hint that a notebook printed in its language, in English and as this room is told it."""
    general, *slips = known
    common = [text for name, text in vars(judge).items() if name.isupper()]
    for sentence in [*slips, *common, general]:
        for code in languages():
            if rendered(sentence, catalogue(code), code) == one.said:
                return sentence, Message(
                    NO_KNOWN_SLIP, sentence
                ) if sentence == general else sentence
    return one.said, Localized(one.said)  # of another edition


def _json(people: list[Person], order: list[str]) -> str:
    """The same for programs."""
    known = hints()

    def answer(one: Answer) -> dict[str, Any]:
        slip = _slip(one, known[one.exercise])[0] if one.state == WRONG else None
        return {"exercise": one.exercise, "state": one.state, "slip": slip}

    def chapter(each: Chapter) -> dict[str, Any]:
        counts = {"solved": each.solved, "total": len(each.answers), "files": list(each.files)}
        return {"chapter": each.label, **counts, "exercises": [*map(answer, each.answers)]}

    rows = [
        {
            "learner": each.name or None,
            "chapters": [chapter(each.chapters[it]) for it in order if it in each.chapters],
            "notes": [
                {"file": note.file, "note": str(note.what), "read": note.read}
                for note in each.notes
            ],
        }
        for each in people
    ]
    shared = [
        {"exercise": name, "slip": sentence, "learners": len(names)}
        for name, sentence, _, names in _slips(people, order)
    ]
    return document("check", learners=rows, slips=shared)
