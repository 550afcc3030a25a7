"""The courses' minutes add up, their cells are there, their machine time is that of a record."""

import copy
import json
import re
from pathlib import Path

import courses
import machine_record
import pytest
import status
import yaml

import notebooks

ROOT = Path(__file__).resolve().parent.parent
RECORD = machine_record.read(ROOT)


@pytest.fixture(scope="module")
def page():
    """The page for teachers with its tables, as it is staged."""
    return status.fill((ROOT / "book" / "workshop.md").read_text(encoding="utf-8"), ROOT)


def test_the_minutes_of_every_session_add_up():
    assert list(courses.problems(ROOT)) == []
    assert list(courses.read(ROOT)) == list(courses.ORDER)


def test_every_course_has_the_step_and_says_for_whom_it_is_not():
    for name, course in courses.read(ROOT).items():
        assert "07_step" in list(courses.chapters_of(course)), name
        assert course["not_for"] and len(course["goals"]) >= 3 and len(course["stuck"]) >= 3


@pytest.fixture
def changed(tmp_path):
    """The problems of a project whose courses are ours, but for what `change` does to one."""
    (tmp_path / "notebooks").symlink_to(ROOT / "notebooks")
    folder = tmp_path / "book" / "courses"
    folder.mkdir(parents=True)

    def problems(change, record=RECORD):
        for name, course in courses.read(ROOT).items():
            course = copy.deepcopy(course)
            if name == "90-minutes":
                change(course)
            (folder / f"{name}.yml").write_text(yaml.safe_dump(course), encoding="utf-8")
        return "\n".join(courses.problems(tmp_path, record))

    return problems


def part(course, chapter):
    return next(p for p in course["sessions"][0]["parts"] if p.get("chapter") == chapter)


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda c: part(c, "07_step").update(talk=18), "session 1: its parts are 91 minutes"),
        (lambda c: c["sessions"][0]["parts"].pop(3), "its parts are 85 minutes, and the course"),
        (lambda c: part(c, "07_step").update(exercises=[1, 2]), "13 minutes of exercises in 9"),
        (lambda c: part(c, "07_step").update(exercises=[5]), "no exercise 5"),
        (lambda c: part(c, "07_step").update(show=["figure-x"]), "no cell figure-x"),
        (lambda c: part(c, "07_step")["run"].pop(0), "no cell tagged machine among those that run"),
        (lambda c: part(c, "07_step").update(chapter="06_logits"), "the step, 07_step, is not in"),
    ],
)
def test_what_does_not_add_up_is_found(changed, change, line):
    assert line in changed(change)
    assert changed(lambda course: None) == ""


def test_more_machine_time_makes_a_course_too_long(changed):
    slow = copy.deepcopy(RECORD)
    slow["chapters"]["07_step"]["seconds"] = 61
    assert "90-minutes, session 1: its parts are 91 minutes" in changed(lambda course: None, slow)


def test_a_course_without_a_place_is_refused(tmp_path):
    (tmp_path / "book" / "courses").mkdir(parents=True)
    (tmp_path / "book" / "courses" / "a-week.yml").write_text("title: A week\n")
    with pytest.raises(ValueError, match="no place for it in ORDER: .*a-week"):
        courses.read(tmp_path)


def test_the_clock_is_that_of_the_minutes(page):
    """From the table of each session as the page shows it, and not from the builder's sums."""
    tables = re.findall(r"^\| from \|.*\n\|[-|]+\|\n((?:\|.*\n?)+)", page, re.M)
    assert len(tables) == 3 + 5
    lengths = []
    for table in tables:
        rows = [[cell.strip() for cell in row.split("|")[1:-1]] for row in table.splitlines()]
        clocks = [60 * int(h) + int(m) for h, _, m in (row[0].partition(":") for row in rows)]
        for row, now, then in zip(rows, clocks, clocks[1:], strict=False):
            pause = re.match(r"Break, (\d+) minutes", row[2])
            spent = [int(cell) for cell in row[3:6] if cell] + ([int(pause[1])] if pause else [])
            assert sum(spent) == then - now, row
        lengths.append(clocks[-1] - clocks[0])
    assert lengths == [90, 240, 480, *[120] * 5]


def test_each_part_whose_cells_run_says_what_its_kernel_has_resident(page):
    """From the tables as the page shows them: GiB beside each minute of machine time."""
    tables = re.findall(r"^\| from \|.*\n\|[-|]+\|\n((?:\|.*\n?)+)", page, re.M)
    rows = [[x.strip() for x in row.split("|")] for t in tables for row in t.splitlines()]
    assert {len(row) for row in rows} == {10}
    shown = [row[2:9] for row in rows if row[6] or row[7]]
    assert len(shown) > 30
    for link, *_, minutes, memory, _ in shown:
        stem = re.search(r"notebooks/(\w+)\.ipynb", link)[1]
        assert minutes and memory == courses.gib(RECORD["chapters"][stem]["peak"])
        assert float(memory.removesuffix(" GiB")) < 2.5, link


def test_each_chapter_was_recorded_and_stays_below_what_a_laptop_has():
    stems = [path.stem for path in notebooks.notebooks([]) if not path.stem.startswith("fine")]
    missing = sorted(set(stems) - RECORD["chapters"].keys())
    assert missing == [], f"not recorded yet: {machine_record.COMMAND} notebooks/<chapter>.ipynb"
    assert RECORD["machine"] and RECORD["command"] == machine_record.COMMAND
    for stem, line in RECORD["chapters"].items():
        assert 2**25 < line["peak"] < machine_record.MOST, stem
        assert 0 < line["seconds"] and re.fullmatch(r"\d{4}-\d\d-\d\d", line["date"])


def test_the_page_says_which_records_are_older_than_their_chapter(page):
    rows = {
        row[2]: row for row in re.finditer(r"^\| (\d+ )?\[.*\]\(notebooks/(\w+)\..*$", page, re.M)
    }
    assert RECORD["chapters"].keys() <= rows.keys()
    for stem, line in RECORD["chapters"].items():
        current = machine_record.key(ROOT / "notebooks" / f"{stem}.ipynb") == line["code"]
        assert rows[stem][0].endswith("† |") != current, stem


def test_a_chapter_that_was_never_recorded_has_its_budget_and_no_sum():
    part = {"chapter": "07_step", "run": ["machine"]}
    assert courses.machine(ROOT, part, {"chapters": {}}) == 1
    assert courses.machine(ROOT, part, {"chapters": {"07_step": {"seconds": 60.1}}}) == 2
    assert courses.machine(ROOT, {"chapter": "07_step", "show": ["figure-step"]}) == 0


def test_only_code_makes_a_record_older(tmp_path):
    cells = [{"cell_type": "markdown", "source": "x"}, {"cell_type": "code", "source": ["1"]}]
    path = tmp_path / "01_x.ipynb"

    def key(cells):
        path.write_text(json.dumps({"cells": cells}))
        return machine_record.key(path)

    before = key(cells)
    assert key([{**cells[0], "source": "y"}, {**cells[1], "outputs": [1]}]) == before
    assert key([cells[0], {**cells[1], "source": ["2"]}]) != before


NOTEBOOK = """%% code setup tags=setup
data = bytearray(300_000_000)

%% code again
sum(range(2_000_000))
"""


def test_record_keeps_what_ran(tmp_path, monkeypatch, capsys):
    """A kernel that fills 300 MB has them in its record, beside the lines of other chapters."""
    import nbformat
    from notebook_text import from_text

    path = tmp_path / "01_x.ipynb"
    nbformat.write(from_text(NOTEBOOK), path)
    monkeypatch.setattr(notebooks, "ROOT", tmp_path)
    (tmp_path / "book" / "courses").mkdir(parents=True)
    other = {
        "machine": "",
        "command": machine_record.COMMAND,
        "chapters": {"00_other": {"peak": 1}},
    }
    (tmp_path / machine_record.FILE).write_text(json.dumps(other))
    assert notebooks.main(["record", str(path)]) == 0
    found = machine_record.read(tmp_path)
    assert list(found["chapters"]) == ["00_other", "01_x"]
    line = found["chapters"]["01_x"]
    assert 3e8 < line["peak"] < 1e9 and line["seconds"] > 0
    assert line["code"] == machine_record.key(path) and "CPU core" in found["machine"]
    assert "01_x" in capsys.readouterr().out
    before = (tmp_path / machine_record.FILE).read_text()
    assert notebooks.main(["time", str(path)]) == 0  # which stores nothing
    assert (tmp_path / machine_record.FILE).read_text() == before
