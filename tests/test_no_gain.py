"""The page of negative results has a row for each such cell, and some of them whole."""

import re
from pathlib import Path

import no_gain
import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = list(no_gain.pages(ROOT))
CELLS = [(path, cell) for path, cells in PAGES for cell in cells if no_gain.is_one(cell)]
NUMBER = re.compile(r"(?<![\w.-])\d[\d,]*(?:\.\d+)?")


@pytest.mark.parametrize(
    ("path", "cells"),
    [(path, cells) for path, cells in PAGES if path.stem[:2].isdigit()][13:27],
    ids=lambda it: getattr(it, "stem", ""),
)
def test_each_technique_shows_where_it_saves_nothing(path, cells):
    assert any(map(no_gain.is_one, cells)), f"no code cell of {path.stem} with an id no-gain-…"


def test_the_page_has_a_row_for_each_cell_and_three_of_them_whole():
    page = no_gain.collected(ROOT)
    for path, cell in CELLS:
        case = no_gain.case_of(cell, path)
        assert f"| {case['technique']} | {case['when']} | {case['bytes']} |" in page
        if case.get("worked"):
            assert no_gain.source(cell) in page and no_gain.printed(cell) in page
    assert page.count("\n### ") == 3
    assert len(re.findall(r"^\| (?!technique|--)", page, re.M)) >= len(CELLS) >= 35


@pytest.mark.parametrize(
    ("path", "cell"), CELLS, ids=[f"{path.stem[:2]}-{cell['id'][8:]}" for path, cell in CELLS]
)
def test_the_numbers_of_a_row_are_those_that_its_cell_printed(path, cell):
    """All but those of the setting, which the code says: 2 × 512 tokens, 8 GPUs."""
    told = NUMBER.findall(no_gain.case_of(cell, path)["bytes"])
    shown = NUMBER.findall(no_gain.printed(cell) + " " + no_gain.source(cell).replace("_", ""))
    known = {number.replace(",", "").rstrip(".") for number in shown}
    for number in told:
        assert number.replace(",", "") in known, f"{number} is in neither output nor code"


def test_an_entry_holds_code_result_reason_and_the_way_back():
    cells = [
        {"cell_type": "code", "id": "no-gain-head", "source": ["1 + 1"],
         "outputs": [{"output_type": "execute_result", "data": {"text/plain": ["2"]}}]},
        {"cell_type": "code", "id": "check-two", "source": "assert True", "outputs": []},
        {"cell_type": "markdown", "id": "why", "source": "**So.** See [it](02_x.ipynb).\n\n## Now"},
    ]  # fmt: skip
    shown = no_gain.entry(cells, 0, Path("21_quantization.ipynb"))
    assert shown.split("\n\n") == [
        "### Quantizing the output head: if it is dequantized whole",
        "```python\n1 + 1\n```",
        "```text\n2\n```",
        "**So.** See [it](notebooks/02_x.ipynb).",
        "[Run it in its chapter](notebooks/21_quantization.ipynb).",
    ]


def test_every_row_belongs_to_a_cell():
    told = {(chapter, name) for chapter, cases in no_gain.CASES.items() for name in cases}
    assert told == {(path.stem, cell["id"].removeprefix("no-gain-")) for path, cell in CELLS}
    rows = [(c["technique"], c["when"]) for cases in no_gain.CASES.values() for c in cases.values()]
    assert len(rows) == len(set(rows))
