"""The chapters' questions, alive on their pages: every answer is there, by the same function."""

import json
import sys
from pathlib import Path

import nbformat
import pytest
from test_pages import SITE, Watched, browser, roots  # noqa: F401

from memlab.widgets import ask

ROOT = Path(__file__).resolve().parent.parent
ANSWERS = ROOT / "book" / "_static" / "answers"
NAMES = json.loads((ANSWERS / "index.json").read_text(encoding="utf-8"))

sys.path.insert(0, str(ROOT / "tools"))
from answers import MOST, STYLE, code_of  # noqa: E402


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


BUILT = [name for name in NAMES if (SITE / "en" / "notebooks" / f"{name}.html").exists()]


@pytest.mark.parametrize("name", BUILT)
def test_a_slider_of_a_page_shows_the_answer_that_it_asks_for(browser, roots, name):  # noqa: F811
    kept = json.loads((ANSWERS / f"{name}.json").read_text(encoding="utf-8"))["questions"][0]
    with Watched(browser, roots["http"]) as watched:
        watched.page.goto(f"{roots['http']}en/notebooks/{name}.html")
        watched.page.wait_for_selector(".memlab-question[data-live=yes]")
        before = watched.page.inner_html(".memlab-answer")
        slider = watched.page.locator(".memlab-question input[type=range]").first
        slider.focus()
        last = len(kept["controls"][0]["values"]) - 1
        watched.page.keyboard.press("Home" if kept["controls"][0]["default"] else "End")
        shown = kept["controls"][0]["values"][0 if kept["controls"][0]["default"] else last]
        assert slider.get_attribute("aria-valuetext") == shown
        assert watched.page.inner_html(".memlab-answer") != before or len(set(kept["answers"])) == 1
        assert watched.wrong == []


@pytest.mark.parametrize("name", BUILT[:3])
def test_in_a_folder_no_slider_is_shown(browser, roots, name):  # noqa: F811
    with Watched(browser, roots["file"]) as watched:
        watched.page.goto(f"{roots['file']}en/notebooks/{name}.html")
        assert watched.page.locator("input[type=range]").count() == 0
        assert "Run this notebook" in watched.page.inner_text(".memlab-question")
        assert watched.wrong == []
