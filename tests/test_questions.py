"""The chapters' questions, alive on their pages: every answer is there, by the same function."""

import json
import subprocess
import sys
from pathlib import Path

import answers
import nbformat
import pytest
from answers import MOST, STYLE, code_of
from test_pages import SITE, Watched, browser, roots  # noqa: F401

from memlab.widgets import ask

ROOT = Path(__file__).resolve().parent.parent
ANSWERS = ROOT / "book" / "_static" / "answers"
NAMES = json.loads((ANSWERS / "index.json").read_text(encoding="utf-8"))


def product(a, b):
    if a == b:
        raise ValueError("they are alike")
    return f"{a} times {b} is <{a * b}>"


def test_every_combination_has_its_answer():
    asked = ask("How much?", product, a=("first", [1, 2]), b=("second", [1000, 2, 3], 3))
    kept = asked.answers()
    assert kept["controls"][1] == {
        "name": "b",
        "label": "second",
        "values": ["1,000", "2", "3"],
        "default": 2,
    }
    assert kept["answers"][0] == "<pre>1 times 1000 is &lt;1000&gt;</pre>"
    assert kept["answers"][4] == "<pre>they are alike</pre>"
    assert kept["answers"][5] == asked.answer(a=2, b=3) and len(kept["answers"]) == 6


def test_asking_writes_the_answers_where_it_is_told_to(tmp_path, monkeypatch):
    monkeypatch.setenv("MEMLAB_ANSWERS", str(tmp_path / "kept.jsonl"))
    asked = ask("How much?", product, a=("first", [1, 2]), b=("second", [3]))
    (line,) = (tmp_path / "kept.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(line) == asked.answers()


@pytest.mark.parametrize("name", NAMES)
def test_the_answers_belong_to_the_notebook_as_it_is(name):
    text = (ANSWERS / f"{name}.json").read_text(encoding="utf-8")
    kept = json.loads(text)
    notebook = nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", as_version=4)
    assert kept["code"] == code_of(notebook)[0], "the code changed: run python tools/answers.py"
    assert len(text) <= MOST + 1
    stored = [
        "".join(output.data["text/html"])
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if "memlab-question" in "".join(output.get("data", {}).get("text/html", ""))
    ]
    assert len(stored) == len(kept["questions"])
    for html, question in zip(stored, kept["questions"], strict=True):
        at, count = 0, 1
        for control in question["controls"]:
            at = at * len(control["values"]) + control["default"]
            count *= len(control["values"])
        assert len(question["answers"]) == count
        assert question["answers"][at] in html.replace(STYLE, ""), (
            "another answer: run python tools/answers.py"
        )


ASKING = """from size import size
from memlab.widgets import ask
ask("How much?", size, a=("first", [1, 2, 3]), b=("second", [7, 8], 8))"""


@pytest.fixture
def chapter(tmp_path, monkeypatch):
    """A notebook that asks, and a module beside it with the formula."""
    monkeypatch.setattr(answers, "TARGET", tmp_path / "answers")
    path = tmp_path / "01_asking.ipynb"
    cells = [nbformat.v4.new_code_cell(ASKING), nbformat.v4.new_code_cell("1 / 0")]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    (tmp_path / "size.py").write_text("def size(a, b): return f'{a * b} B'")
    return path


def told(chapter, *words):
    """What tools/answers.py says in a process of its own, which a kernel leaves sockets open in."""
    code = "import sys, answers; from pathlib import Path; answers.TARGET = Path(sys.argv[1]); "
    code += "sys.exit(answers.main(sys.argv[2:]))"
    command = [sys.executable, "-c", code, str(answers.TARGET), *words, str(chapter)]
    done = subprocess.run(command, cwd=ROOT / "tools", capture_output=True, text=True)
    return done.returncode, done.stdout


def test_a_changed_formula_makes_the_answers_stale(chapter):
    assert told(chapter)[0] == 0
    assert answers.kept_of(chapter)["questions"][0]["answers"][3] == "<pre>16 B</pre>"
    assert json.loads((answers.TARGET / "index.json").read_text()) == ["01_asking"]
    assert told(chapter, "check") == (0, "all notebooks were asked\n")
    # The default answer, 1 and 8, stays the same, and so does the code of the notebook.
    formula = "def size(a, b): return f'{a * b - (a == 3 and b == 7)} B'"
    (chapter.parent / "size.py").write_text(formula)
    stale = "01_asking.ipynb: How much? Another answer at first 3, second 7\n"
    assert told(chapter, "check") == (1, stale)


def test_a_notebook_that_fails_gets_no_file(chapter):
    (chapter.parent / "size.py").write_text("def size(a, b): return 1 / 0")
    status, said = told(chapter)
    assert status == 1 and "ZeroDivisionError" in said
    assert not (answers.TARGET / "01_asking.json").exists()


def test_every_way_of_falling_behind_is_named(chapter):
    answers.TARGET.mkdir()
    question = ask("How much?", product, a=("first", [1, 2]), b=("second", [3, 4])).answers()
    assert answers.write(chapter, [question]) == ""
    assert answers.difference(chapter, [question]) == ""
    assert answers.difference(chapter, []) == "0 questions, 1 are kept"
    other = question | {"question": "How many?"}
    assert answers.difference(chapter, [other]) == "another question: How many?"
    other = question | {"answers": [*question["answers"][:2], "<pre>new</pre>", "<pre></pre>"]}
    assert answers.difference(chapter, [other]).endswith("Another answer at first 2, second 3")
    assert answers.write(chapter, []) == "" and answers.kept_of(chapter) == {}
    assert answers.difference(chapter, []) == ""


BUILT = [name for name in NAMES if (SITE / "en" / "notebooks" / f"{name}.html").exists()]


@pytest.fixture(scope="module")
def window(browser, roots):  # noqa: F811
    with Watched(browser, roots["http"]) as watched:
        yield watched


@pytest.mark.sample(9)
@pytest.mark.parametrize("name", BUILT)
def test_a_slider_of_a_page_shows_the_answer_that_it_asks_for(window, name):
    kept = json.loads((ANSWERS / f"{name}.json").read_text(encoding="utf-8"))["questions"][0]
    page = window.page
    page.goto(f"{window.root}en/notebooks/{name}.html")
    page.wait_for_selector(".memlab-question[data-live=yes]")
    before = page.inner_html(".memlab-answer")
    slider = page.locator(".memlab-question input[type=range]").first
    slider.focus()
    last = len(kept["controls"][0]["values"]) - 1
    page.keyboard.press("Home" if kept["controls"][0]["default"] else "End")
    shown = kept["controls"][0]["values"][0 if kept["controls"][0]["default"] else last]
    assert slider.get_attribute("aria-valuetext") == shown
    assert page.inner_html(".memlab-answer") != before or len(set(kept["answers"])) == 1
    assert window.wrong == []


@pytest.mark.parametrize("name", BUILT[:3])
def test_in_a_folder_no_slider_is_shown(browser, roots, name):  # noqa: F811
    with Watched(browser, roots["file"]) as watched:
        watched.page.goto(f"{roots['file']}en/notebooks/{name}.html")
        assert watched.page.locator("input[type=range]").count() == 0
        assert "Run this notebook" in watched.page.inner_text(".memlab-question")
        assert watched.wrong == []


@pytest.mark.sample(9)
@pytest.mark.parametrize("name", BUILT)
def test_a_slider_is_called_by_its_label(window, name):
    """In the accessibility tree a slider has the name of what it moves; its value is not in it."""
    kept = json.loads((ANSWERS / f"{name}.json").read_text(encoding="utf-8"))["questions"]
    page = window.page
    page.goto(f"{window.root}en/notebooks/{name}.html")
    for _ in kept:
        page.wait_for_selector(".memlab-question[data-live=yes]")
    tree = page.context.new_cdp_session(page).send("Accessibility.getFullAXTree")["nodes"]
    found = [
        (node["name"]["value"], node["value"]["value"])
        for node in tree
        if node.get("role", {}).get("value") == "slider"
    ]
    controls = [control for question in kept for control in question["controls"]]
    shown = [(one["label"], one["default"]) for one in controls]
    assert [(label, int(value)) for label, value in found] == shown
    for label in {one["label"] for one in controls}:
        named = page.get_by_role("slider", name=label, exact=True)
        assert named.count() == [one["label"] for one in controls].count(label)
    lines = [line.split() for line in page.locator(".memlab-slider").all_inner_texts()]
    written = [f"{one['label']}: {one['values'][one['default']]}".split() for one in controls]
    assert lines == written
    assert window.wrong == []
