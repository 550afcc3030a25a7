"""The courses of book/courses/*.yml as the tables of book/workshop.md.

A course is a list of sessions, a session a list of parts with their minutes:

    talk        the instructor talks, types and asks
    exercise    people work; no less than the exercises that it names say of themselves
    machine     a chapter whose cells run is run as a whole when its part begins; computed from
                the recorded run (tools/machine_record.py) and rounded up to whole minutes
    break       nobody works

`problems` says what does not fit together. `tools/book.py` puts the tables where the page says
`<!-- courses -->`, by way of tools/status.py.
"""

import json
import re
from functools import cache
from math import ceil

import machine_record
import yaml

ORDER = ("90-minutes", "half-a-day", "one-day", "five-evenings")
EXERCISE = re.compile(r"\*\*Exercise(?: (\d))? \(\w+, (\d+) min\)\.\*\*")
SHEET = "[one sheet](#one-sheet)"
HEAD = "| from | with | what | talk | exercise | machine | memory | when late |"


def read(root):
    """The courses by name, in the order in which the page shows them."""
    files = {path.stem: path for path in (root / "book" / "courses").glob("*.yml")}
    if unknown := sorted(files.keys() ^ set(ORDER)):
        raise ValueError(f"no course, or no place for it in ORDER: {', '.join(unknown)}")
    return {name: yaml.safe_load(files[name].read_text(encoding="utf-8")) for name in ORDER}


def machine(root, part, record=None):
    """Whole minutes of machine time of a part: those of its chapter, if cells of it run."""
    if not part.get("run"):
        return 0
    record = record or machine_record.read(root)
    return ceil(machine_record.seconds(record, part["chapter"]) / 60)


def memory(root, part):
    """The most that the kernel of a part had resident; nothing where no cells run or none did."""
    line = machine_record.read(root)["chapters"].get(part["chapter"]) if part.get("run") else None
    return gib(line["peak"]) if line else ""


def length(root, part, record=None):
    """Minutes of a part."""
    stated = sum(part.get(kind, 0) for kind in ("talk", "exercise", "break"))
    return stated + machine(root, part, record)


def problems(root, record=None):
    """Sentences on whatever in the courses does not add up or names what is not there."""
    for name, course in read(root).items():
        where = [part.get("chapter") for session in course["sessions"] for part in session["parts"]]
        if "07_step" not in where:
            yield f"{name}: the step, 07_step, is not in it"
        for number, session in enumerate(course["sessions"], 1):
            parts = session["parts"]
            minutes = sum(length(root, part, record) for part in parts)
            if minutes != course["minutes"]:
                said = f"{minutes} minutes, and the course says {course['minutes']}"
                yield f"{name}, session {number}: its parts are {said}"
            for part in parts:
                if chapter := part.get("chapter"):
                    yield from (f"{name}, {chapter}: {line}" for line in amiss(root, part))


def amiss(root, part):
    """What is wrong with a part of a chapter: its cells, its exercises and their minutes."""
    cells, offered = chapter(root, part["chapter"])
    if missing := [
        each for each in part.get("show", []) + part.get("run", []) if each not in cells
    ]:
        yield f"no cell {', '.join(missing)}"
    if part.get("run") and "machine" not in {
        tag for each in part["run"] for tag in cells.get(each, [])
    }:
        yield "no cell tagged machine among those that run: it is what is typed"
    numbers = part.get("exercises", [])
    if unknown := [each for each in numbers if each not in offered]:
        yield f"no exercise {', '.join(map(str, unknown))}"
    elif (need := sum(offered[each] for each in numbers)) > part.get("exercise", 0):
        yield f"{need} minutes of exercises in {part.get('exercise', 0)}"


@cache
def chapter(root, stem):
    """The cells of a chapter by id with their tags, and the minutes of its exercises by number."""
    path = root / "notebooks" / f"{stem}.ipynb"
    if not path.exists():
        raise ValueError(f"no chapter {stem!r}")
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    text = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    minutes = {int(number or 1): int(took) for number, took in EXERCISE.findall(text)}
    return {cell["id"]: cell["metadata"].get("tags", []) for cell in cells}, minutes


def link(root, stem):
    """The title of a chapter up to its colon, as a link from book/."""
    cells = json.loads((root / "notebooks" / f"{stem}.ipynb").read_text(encoding="utf-8"))["cells"]
    title = re.findall(r"^# ([^:\n]+)", "".join(cells[0]["source"]), re.M)[0].strip()
    return f"[{title}](notebooks/{stem}.ipynb)"


def compared(root):
    """The courses beside each other: how long they are, and what their machines need."""
    record = machine_record.read(root)
    rows = ["| course | minutes | chapters | processor time | memory |", "|---|---|---|---|---|"]
    for course in read(root).values():
        stems = dict.fromkeys(chapters_of(course))
        took, peak = "—", "—"  # unless each chapter was recorded
        if stems.keys() <= record["chapters"].keys():
            seen = [record["chapters"][stem] for stem in stems]
            took = f"{sum(line['seconds'] for line in seen):.0f} s"
            peak = gib(max(line["peak"] for line in seen))
        many = len(course["sessions"])
        minutes = f"{many} × {course['minutes']}" if many > 1 else course["minutes"]
        numbers = " · ".join(f"{int(s[:2])}" if s[0].isdigit() else SHEET for s in stems)
        rows.append(f"| {course['title']} | {minutes} | {numbers} | {took} | {peak} |")
    return "\n".join(rows)


def chapters_of(course):
    """The chapters that a course runs, in order."""
    for session in course["sessions"]:
        yield from (part["chapter"] for part in session["parts"] if part.get("run"))


def gib(size):
    return f"{size / 2**30:.2f} GiB"


def whole(root):
    """A section for each course: for whom, goals, where people get stuck, the schedule."""
    return "\n\n".join(section(root, name, course) for name, course in read(root).items())


def section(root, name, course):
    words = [f"(course-{name})=\n## {course['title']}", f"**For** {course['for']}"]
    words += [f"**Not for** {course['not_for']}", "Afterwards people can"]
    words += ["\n".join(f"- {goal}" for goal in course["goals"])]
    words += ["**Where they get stuck**", "\n".join(f"- {line}" for line in course["stuck"])]
    for session in course["sessions"]:
        if title := session.get("title"):
            words.append(f"### {title}")
        words.append(schedule(root, session, course["start"]))
    return "\n\n".join(words)


def schedule(root, session, start):
    """The table of a session, with a clock that begins at its start."""
    hours, minutes = map(int, start.split(":"))
    clock, rows = 60 * hours + minutes, [HEAD, "|---|---|---|---|---|---|---|---|"]
    for part in session["parts"]:
        times = part.get("talk", ""), part.get("exercise", ""), machine(root, part) or ""
        title = link(root, part["chapter"]) if "chapter" in part else ""
        ends = memory(root, part), part.get("late", "")
        cells = [clock_of(clock), title, what(part), *map(str, times), *ends]
        rows.append(f"| {' | '.join(cells)} |")
        clock += length(root, part)
    return "\n".join([*rows, f"| {clock_of(clock)} | | | | | | | |"])


def what(part):
    """What happens in a part, and with which cells and exercises."""
    if "break" in part:
        return f"Break, {part['break']} minutes."
    named = [f"`{each}`" for each in part.get("show", []) + part.get("run", [])]
    words = part["what"] + (f" Cells: {', '.join(named)}." if named else "")
    if numbers := part.get("exercises"):
        plural = "s" * (len(numbers) > 1)
        words += f" Exercise{plural} {' and '.join(map(str, numbers))}."
    return words


def clock_of(minutes):
    return f"{minutes // 60 % 24}:{minutes % 60:02}"


def machines(root):
    """What each chapter took in the recorded run; a dagger where its code has changed since."""
    record = machine_record.read(root)["chapters"]
    rows = ["| chapter | processor time | memory | recorded |", "|---|---|---|---|"]
    for stem, line in record.items():
        path = root / "notebooks" / f"{stem}.ipynb"
        older = "" if machine_record.key(path) == line["code"] else " †"
        number = f"{int(stem[:2])} " if stem[0].isdigit() else ""
        name = f"{number}{link(root, stem)}"
        took = f"{line['seconds']:.0f} s"
        rows.append(f"| {name} | {took} | {gib(line['peak'])} | {line['date']}{older} |")
    return "\n".join(rows)
