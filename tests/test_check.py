"""`memlab check`: what a learner's notebooks say, read and never run; a room's table."""

import json
import re
import shutil
import socket
import sys
from pathlib import Path

import jsonschema
import lay
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab import exercises
from memlab.base.message import is_message, rendered
from memlab.base.messages import catalogue, languages
from memlab.cli import check, learners, main
from memlab.cli.schema import schema
from memlab.exercises import judge
from memlab.files import learner

ROOT = Path(__file__).resolve().parent.parent
BOOK = ROOT / "notebooks"
HINTS = exercises.hints()
FULL = "✓ 1,212,416 B, 1.156 MiB"
SLIP = HINTS["ex-activations-1"][1]
LANGUAGES = tuple(languages())


def printed(*lines):
    return [{"output_type": "stream", "name": "stdout", "text": [f"{line}\n" for line in lines]}]


def cell(source, outputs=(), **more):
    usual = {"cell_type": "code", "metadata": {"tags": ["exercise"]}, "execution_count": None}
    return usual | {"source": source.splitlines(True), "outputs": list(outputs)} | more


def ask(number, answer="...", line=None, chapter="activations"):
    outputs = [] if line is None else printed(line)
    return cell(f'answer = {answer}\ncheck("ex-{chapter}-{number}", answer)', outputs)


def write(path, *cells, **more):
    path.parent.mkdir(parents=True, exist_ok=True)
    kernel = {"kernelspec": {"name": "python3", "language": "python"}}
    whole = {"nbformat": 4, "nbformat_minor": 5, "metadata": kernel, "cells": list(cells)} | more
    path.write_text(json.dumps(whole), encoding="utf-8")
    return str(path)


def solved(*but, line="✓ 1 B", chapter="activations"):
    """The four exercises of a chapter, with other cells for some of them."""
    given = {each["source"][-1]: each for each in but}
    usual = [ask(number, "1", line, chapter) for number in (1, 2, 3, 4)]
    return [given.get(each["source"][-1], each) for each in usual]


def read(*cells):
    return {one.exercise: one for one in learner.read({"cells": list(cells)}).answers}


def document(capsys, *words):
    status = main(["check", *words, "--json"])
    found = json.loads(capsys.readouterr().out)
    jsonschema.validate(found, schema("check"))
    return found, status


# One cell ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "line", "state"),
    [
        ("...", "○ …", "open"),
        ("...", None, "not run"),
        ("7", None, "not run"),
        ("7", FULL, "solved"),
        ("7", f"✗ {SLIP}", "wrong"),
        ("7", "○ …", "not run"),  # written after the cell ran
        ("...", FULL, "not run"),  # and taken out again
        ("...", f"✗ {SLIP}", "not run"),
    ],
)
def test_the_stored_output_says_what_became_of_an_answer(answer, line, state):
    found = read(ask(1, answer, line))["ex-activations-1"]
    assert (found.state, found.said) == (state, SLIP if state == "wrong" else "")


def test_an_answer_from_another_cell_is_what_its_output_says():
    for line, state in (("○ …", "open"), (FULL, "solved")):
        found = read(cell('check("ex-activations-1", size)', printed(line)))
        assert found["ex-activations-1"].state == state


def test_a_cell_that_stops_names_its_error():
    error = {"output_type": "error", "ename": "NameError", "evalue": "x", "traceback": []}
    both = cell('check("ex-a-1", 1)\ncheck("ex-a-2", x)', [*printed("✓ 1 B"), error])
    found = read(both)
    assert found["ex-a-1"].state == "solved"
    assert (found["ex-a-2"].state, found["ex-a-2"].said) == ("stopped", "NameError")


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ('check("ex-a-1", 1)', ["ex-a-1"]),
        ("%time x = 1\n!ls\nmemlab.exercises.check('ex-a-1', x)", ["ex-a-1"]),
        ('for x in (1, 2):\n    check("ex-a-1", x)', ["ex-a-1"]),
        ('check("ex-a-1", 1); check("ex-a-2", 2)', ["ex-a-1", "ex-a-2"]),
        ('# check("ex-a-1", 1)', []),
        ('print("check(ex-a-1)")', []),
        ("check(name, 1)", []),
        ('check("ex-a-1", (1)', ["ex-a-1"]),  # which Python cannot read either
        ('check("ex-a-1",\n      weights(model))', ["ex-a-1"]),
    ],
)
def test_the_checks_of_a_cell(source, names):
    assert [name for name, _ in learner.checks(source)] == names


def test_a_loop_counts_by_its_last_line():
    found = read(cell('for x in (1, 2):\n    check("ex-a-1", x)', printed("✗ no", "✓ 2 B")))
    assert found["ex-a-1"].state == "solved"


def test_lines_that_others_print_are_no_answers():
    found = read(cell('check("ex-a-1", 1)', printed("✓derived = measured", "○ …", "well")))
    assert found["ex-a-1"].state == "not run"  # by the one line that check can have printed


@pytest.mark.parametrize(
    "mark", [{"metadata": {"tags": ["solution"]}}, {"id": "sol-a-1"}, {"id": "solution-a-1"}]
)
def test_the_book_s_solution_is_no_answer(mark):
    theirs = cell('check("ex-a-1", 1)', printed("✓ 1 B"), **{"metadata": {}} | mark)
    assert read(cell('check("ex-a-1", ...)', printed("○ …")), theirs)["ex-a-1"].state == "open"
    assert read(theirs) == {}


def test_a_cell_of_the_learner_s_own_counts():
    own = cell('check("ex-a-1", 1)', printed("✓ 1 B"), metadata={})
    assert read(cell('check("ex-a-1", ...)', printed("○ …")), own)["ex-a-1"].state == "solved"


def test_where_tags_and_ids_were_lost_the_first_check_counts_and_that_is_said():
    bare = [cell('check("ex-a-1", x)', printed(line), metadata={}) for line in ("○ …", "✓ 1 B")]
    found = learner.read({"cells": bare})
    assert [one.state for one in found.answers] == ["open"]
    assert found.notes == (learner.UNMARKED,)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["code", "stream", "✓ 1", "x"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["source", "outputs", "text", "tags", "name"]), inner)
    ),
    max_leaves=8,
)
CELLS = st.fixed_dictionaries(
    {"cell_type": st.just("code")},
    optional={
        "source": st.sampled_from(['check("ex-a-1", 1)', 'check("ex-a-1",', "\0", "é" * 9])
        | VALUES,
        "outputs": VALUES | st.lists(st.fixed_dictionaries({"output_type": st.just("stream")})),
        "metadata": VALUES,
        "id": VALUES,
    },
)


@given(st.lists(CELLS | VALUES, max_size=4), VALUES)
def test_no_shape_of_a_cell_ends_the_reader(cells, metadata):
    found = learner.read({"cells": cells, "metadata": metadata})
    assert {one.exercise for one in found.answers} <= {"ex-a-1"}


# One learner ------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_chapter_as_the_book_gives_it_is_open_in_each_language(tmp_path, capsys, language):
    name = "05_activations.ipynb"
    if language == "en":
        shutil.copy(BOOK / name, tmp_path)
    else:
        lay.notebooks(language, tmp_path, ["05_activations"])
    (tmp_path / name).rename(tmp_path / "homework.ipynb")
    found, status = document(capsys, str(tmp_path))
    (chapter,) = found["learners"][0]["chapters"]
    assert (chapter["chapter"], chapter["solved"], chapter["total"]) == ("activations", 0, 4)
    assert {one["state"] for one in chapter["exercises"]} == {"open"}
    assert status == 1 and found["learners"][0]["notes"] == [] and found["slips"] == []


def test_every_chapter_of_the_book_is_there_with_all_exercises(capsys):
    found, _ = document(capsys, str(BOOK))
    chapters = found["learners"][0]["chapters"]
    assert sum(each["total"] for each in chapters) == len(HINTS)
    names = [Path(each["files"][0]).name for each in chapters]
    assert names == sorted(names), "the order of the book"
    assert found["learners"][0]["notes"] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_slip_is_known_by_the_hint_of_any_language(tmp_path, capsys, language):
    said = rendered(SLIP, catalogue(language), language)
    assert (said == SLIP) == (language == "en")
    cells = solved(ask(1, "5", f"✗ {said}"))
    path = write(tmp_path / "05_activations.ipynb", *cells)
    found, status = document(capsys, path)
    assert found["slips"] == [{"exercise": "ex-activations-1", "slip": SLIP, "learners": 1}]
    assert found["learners"][0]["chapters"][0]["exercises"][0]["slip"] == SLIP and status == 1
    for room in LANGUAGES:
        assert main(["check", path, "--lang", room]) == 1
        assert rendered(SLIP, catalogue(room), room) in capsys.readouterr().out


def test_the_answer_goes_back_to_the_language_before(tmp_path, capsys):
    path = write(tmp_path / "a.ipynb", ask(1, "5", f"✗ {SLIP}"))
    for words in (["--lang", "pt-BR"], []):
        main(["check", path, *words])
    said = capsys.readouterr().out
    assert SLIP in said and rendered(SLIP, catalogue("pt-BR"), "pt-BR") in said


def test_every_slip_of_the_book_is_known_again():
    for name, sentences in HINTS.items():
        for place, sentence in enumerate(sentences):
            for code in LANGUAGES:
                said = rendered(sentence, catalogue(code), code)
                one = learner.Answer(name, "wrong", said)
                assert check._slip(one, sentences)[0] in (sentence, *sentences[:place]), name


def test_a_slip_that_any_question_invites_and_a_hint_without_one(tmp_path, capsys):
    general = HINTS["ex-activations-2"][0]
    cells = [ask(1, "5", f"✗ {judge.BITS}"), ask(2, "5", f"✗ {general}"), ask(3, "5", "✗ Old.")]
    path = write(tmp_path / "a.ipynb", *solved(*cells))
    assert main(["check", path]) == 1
    said = capsys.readouterr().out
    assert re.search(rf"ex-activations-1 +{re.escape(judge.BITS)}", said)
    assert f"no known slip; the hint was: {general}" in said
    assert re.search(r"ex-activations-3 +Old\.", said), "of another edition, as it was printed"
    assert "solved: 1 of 4 exercises" in said


def test_all_solved_is_status_0(tmp_path, capsys):
    path = write(tmp_path / "a.ipynb", *solved())
    assert main(["check", path]) == 0
    assert capsys.readouterr().out.startswith("chapter ")


def test_of_two_copies_the_best_answer_counts(tmp_path, capsys):
    write(tmp_path / "05_activations.ipynb", *solved(ask(1, "5", f"✗ {SLIP}"), ask(2)))
    write(tmp_path / "05_activations (1).ipynb", *solved(ask(3), ask(4, "9")))
    write(tmp_path / ".ipynb_checkpoints" / "05_activations-checkpoint.ipynb", *solved())
    found, status = document(capsys, str(tmp_path))
    (person,) = found["learners"]
    states = [one["state"] for one in person["chapters"][0]["exercises"]]
    assert states == ["solved"] * 4 and status == 0
    assert [note["note"] for note in person["notes"]] == [learners.COPIES]


def test_what_is_odd_is_named_and_the_rest_is_read(tmp_path, capsys):
    write(tmp_path / "fine.ipynb", *solved())
    (tmp_path / "broken.ipynb").write_text('{"cells": [')
    (tmp_path / "list.ipynb").write_text("[]")
    (tmp_path / "latin.ipynb").write_bytes(b'{"cells": "\xe9"}')
    (tmp_path / "deep.ipynb").write_text("[" * 10**5)
    write(tmp_path / "three.ipynb", nbformat=3, cells=None, worksheets=[{"cells": []}])
    write(tmp_path / "r.ipynb", metadata={"kernelspec": {"name": "ir", "language": "R"}})
    write(tmp_path / "old.ipynb", ask(1, "1", "✓ 1 B", "weights"), ask(9, "1", "✓ 1 B", "older"))
    found, status = document(capsys, str(tmp_path), str(tmp_path / "gone.ipynb"))
    (person,) = found["learners"]
    notes = {Path(note["file"]).stem: note for note in person["notes"]}
    assert {name for name, note in notes.items() if not note["read"]} == {
        *("broken", "list", "latin", "deep", "three", "gone")
    }
    for name, words in {
        "broken": "it is not JSON: ",
        "list": learner.NO_CELLS,
        "latin": "not UTF-8 text",
        "deep": "it is nested too deeply",
        "three": "it is in format 3 of notebooks",
        "r": "its kernel runs R",
        "gone": "No such file",
    }.items():
        assert notes[name]["note"].startswith(words)
    of_old = [note["note"] for note in person["notes"] if Path(note["file"]).stem == "old"]
    assert "ex-older-9" in of_old[0] and "another edition" in of_old[0]
    assert "ex-weights-2, ex-weights-3, ex-weights-4" in of_old[1]
    assert {each["chapter"]: each["solved"] for each in person["chapters"]} == {
        "activations": 4,
        "weights": 1,
    }
    assert status == 1


def test_a_kernel_of_another_name_is_python_s_all_the_same(tmp_path, capsys):
    named = {"kernelspec": {"name": "conda-env-x-py", "language": "python"}}
    path = write(tmp_path / "a.ipynb", *solved(), metadata=named)
    found, status = document(capsys, path)
    assert status == 0 and found["learners"][0]["notes"] == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["a.ipynb", "--class", "."], "--class . reads a whole room; leave a.ipynb out"),
        (["--out", "a.pdf"], "--out a.pdf: the file's name ends in .html or .md"),
        (["--class", "nowhere"], "nowhere: No such file or directory"),
        ([], "this folder: no notebook (*.ipynb) is there"),
        (["--class", "."], ".: no notebook (*.ipynb) is there"),
        (["--lang", "xx"], "argument --lang: invalid choice: 'xx'"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path, monkeypatch, capsys, words, message):
    monkeypatch.chdir(tmp_path)
    try:
        status = main(["check", *words])
    except SystemExit as end:  # argparse's own way
        status = end.code
    assert status == 2 and message in capsys.readouterr().err


# A room -----------------------------------------------------------------------------------------


@pytest.fixture
def room(tmp_path):
    """Three learners in folders and one in a file's name, two of them in other languages."""
    folder = tmp_path / "room"
    other = HINTS["ex-activations-2"][1]
    told = {code: rendered(SLIP, catalogue(code), code) for code in LANGUAGES}
    two = ask(2, "5", f"✗ {other}")
    write(folder / "ana" / "05_activations.ipynb", *solved(ask(1, "5", f"✗ {told['pt-BR']}"), two))
    write(folder / "Bo" / "deep" / "mine.ipynb", *solved(ask(1, "5", f"✗ {told['en']}"), two))
    write(folder / "Bo" / "02_weights.ipynb", *solved(ask(3, chapter="weights"), chapter="weights"))
    write(folder / "05_activations-chen.ipynb", *solved(ask(1, "5", f"✗ {told['zh-TW']}")))
    write(folder / "02_weights_chen.ipynb", *solved(chapter="weights"))
    (folder / "dora").mkdir()
    return folder


def test_a_room_s_table_and_the_slips_of_several(room, capsys):
    assert main(["check", "--class", str(room)]) == 1
    said = capsys.readouterr().out.split("\n\n")
    rows = [line.split() for line in said[0].splitlines()]
    assert rows[0] == ["learner", "weights", "activations"]
    assert rows[1:] == [["ana", "2/4"], ["Bo", "3/4", "2/4"], ["chen", "4/4", "3/4"], ["dora"]]
    slips = [re.split(r" {2,}", line.strip()) for line in said[1].splitlines()]
    assert slips == [
        ["learners", "exercise", "likely slip"],
        ["3", "ex-activations-1", SLIP],
        ["2", "ex-activations-2", HINTS["ex-activations-2"][1]],
    ]
    assert re.search(r"^dora: no notebook is in it$", said[2], re.M)


def test_a_room_in_which_nobody_shares_a_slip(tmp_path, capsys):
    write(tmp_path / "a" / "a.ipynb", *solved(ask(1, "5", f"✗ {SLIP}")))
    write(tmp_path / "b" / "a.ipynb", *[ask(number) for number in (1, 2, 3, 4)])
    assert main(["check", "--class", str(tmp_path)]) == 1
    said = capsys.readouterr().out
    assert "No slip was made by several learners." in said and SLIP not in said
    assert re.search(r"^b +not run$", said, re.M)


@pytest.mark.parametrize(
    ("stem", "name"),
    [
        ("05_activations-maria", "maria"),
        ("maria_05_activations", "maria"),
        ("maria silva - 18_step_in_backward (2)", "maria silva"),
        ("29_fp8_half.joão", "joão"),
        ("11-kv-cache 陳", "陳"),
        ("05_activations", "05_activations"),
        ("stephen", "stephen"),
        ("ana", "ana"),
    ],
)
def test_a_learner_is_what_a_file_is_called_beside_its_chapter(stem, name):
    assert learners.name_in(stem) == name


def test_a_room_as_a_page_and_as_markdown(room, tmp_path, capsys):
    write(room / "<b>|eve" / "a.ipynb", *solved())
    for name, head in (("room.html", "<!doctype html>"), ("room.md", "| learner | weights |")):
        path = tmp_path / name
        assert main(["check", "--class", str(room), "--out", str(path)]) == 1
        text = path.read_text(encoding="utf-8")
        assert text.startswith(head) and "ex-activations-1" in text and "2/4" in text
        assert "<b>" not in text.replace(r"\<b>", ""), "a name is no markup"
    assert r"| \<b>\|eve |  | 4/4 |" in text
    assert "http" not in (tmp_path / "room.html").read_text(encoding="utf-8").replace("doctype", "")


def test_nothing_is_sent_and_nothing_is_run(room, monkeypatch, capsys):
    def refused(*_):
        raise AssertionError("a socket")

    monkeypatch.setattr(socket, "socket", refused)
    left = room / "ran.txt"
    code = f"open({str(left)!r}, 'w')\n"
    write(room / "eve" / "a.ipynb", cell(code + 'check("ex-activations-1", 1)', printed(FULL)))
    assert main(["check", "--class", str(room)]) == 1
    assert re.search(r"^eve +1/4$", capsys.readouterr().out, re.M) and not left.exists()


def test_run_executes_a_copy_and_leaves_the_file(tmp_path, capsys):
    pytest.importorskip("nbclient")
    right = exercises._exercise("ex-accumulation-3").answer()
    cells = [
        cell("from memlab.exercises import check\nopen('ran.txt', 'w').close()", metadata={}),
        cell("1 / 0", metadata={}),
        ask(3, right, "○ …", "accumulation"),
        ask(4, "5", FULL, "accumulation"),
        ask(1, "nothing", FULL, "accumulation"),
        cell('check("ex-accumulation-2", 16)', id="sol-2", metadata={}),
        *("no cell", {"cell_type": "code"}, {"cell_type": "markdown", "source": 5}),
    ]
    path = Path(write(tmp_path / "a.ipynb", *cells))
    write(tmp_path / "r.ipynb", cell("1"), metadata={"kernelspec": {"language": "R"}})
    before = path.read_bytes()
    found, status = document(capsys, str(tmp_path), "--run")
    states = [one["state"] for one in found["learners"][0]["chapters"][0]["exercises"]]
    assert states == ["stopped", "open", "solved", "wrong"] and status == 1
    assert (tmp_path / "ran.txt").exists() and path.read_bytes() == before
    notes = {Path(note["file"]).name: note["note"] for note in found["learners"][0]["notes"]}
    assert notes["r.ipynb"].startswith("its kernel runs R")
    assert main(["check", str(path)]) == 1
    assert re.search(r"accumulation \(.*\) +2/4 +2 +3$", capsys.readouterr().out, re.M)


@pytest.mark.parametrize(
    ("code", "note"),
    [
        ("raise SystemExit(3)", "it was not run, for the kernel python3 does not start: "),
        (
            "import os, time; time.sleep(9)",
            "it was not run, for the kernel python3 does not start: RuntimeError: Kernel didn't",
        ),
    ],
)
def test_a_kernel_that_does_not_start_is_named(tmp_path, monkeypatch, capsys, code, note):
    check_run = pytest.importorskip("memlab.cli.check_run")
    spec = tmp_path / "kernels" / "python3" / "kernel.json"
    spec.parent.mkdir(parents=True)
    argv = [sys.executable, "-c", code, "{connection_file}"]
    spec.write_text(json.dumps({"argv": argv, "display_name": "x", "language": "python"}))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    monkeypatch.setattr(check_run, "SECONDS", 2)
    for name in ("a", "b"):
        write(tmp_path / "room" / f"{name}.ipynb", *solved())
    found, status = document(capsys, "--class", str(tmp_path / "room"), "--run")
    assert [one["notes"][0]["note"].startswith(note) for one in found["learners"]] == [True, True]
    states = {e["state"] for one in found["learners"] for e in one["chapters"][0]["exercises"]}
    assert states == {"not run"} and status == 1


def test_a_cell_without_end_is_named_and_what_was_before_it_counts(tmp_path, monkeypatch, capsys):
    check_run = pytest.importorskip("memlab.cli.check_run")
    usual = check_run.NotebookClient
    monkeypatch.setattr(
        check_run, "NotebookClient", lambda *a, **more: usual(*a, **more | {"timeout": 3})
    )
    first = cell("print('✓ 1 B')\ncheck = print\n0 and check('ex-activations-1', 1)", metadata={})
    path = write(tmp_path / "a.ipynb", first, cell("while True: pass"), ask(2, "1", FULL))
    found, status = document(capsys, path, "--run")
    (person,) = found["learners"]
    states = [one["state"] for one in person["chapters"][0]["exercises"]]
    assert states == ["solved", "not run", "open", "open"] and status == 1
    assert person["notes"][0]["note"].startswith("a cell ran for more than ")


@pytest.mark.parametrize("module", [learner, learners, check])
def test_a_translator_is_given_every_sentence(module):
    texts = {one for name, one in vars(module).items() if name.isupper() and isinstance(one, str)}
    assert len(texts) > 5
    assert {one for one in texts if is_message(one)} - {check.ABOUT} <= set(check.SENTENCES)
