"""The page of negative results shows each such cell of the chapters, with its output and reason."""

import json
import re
from pathlib import Path

import no_gain
import pytest

ROOT = Path(__file__).resolve().parent.parent


TECHNIQUES = sorted(
    path for path in (ROOT / "notebooks").glob("[123]*.ipynb") if 14 <= int(path.stem[:2]) <= 26
)


@pytest.mark.parametrize("path", TECHNIQUES, ids=lambda path: path.stem)
def test_each_technique_shows_where_it_saves_nothing(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    assert any(no_gain.is_one(cell) for cell in cells), "no code cell with an id no-gain-…"


def test_the_page_has_each_cell_with_its_output():
    page = no_gain.collected(ROOT)
    count = 0
    for path in (ROOT / "notebooks").glob("[0-9]*.ipynb"):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            if no_gain.is_one(cell):
                count += 1
                assert no_gain.source(cell) in page and no_gain.printed(cell) in page
    assert count == len(re.findall(r"^### ", page, re.M)) >= 4


def test_an_entry_holds_code_result_reason_and_the_way_back():
    cells = [
        {"cell_type": "code", "id": "no-gain-head", "source": ["1 + 1"],
         "outputs": [{"output_type": "execute_result", "data": {"text/plain": ["2"]}}]},
        {"cell_type": "code", "id": "check-two", "source": "assert True", "outputs": []},
        {"cell_type": "markdown", "id": "why", "source": "**So.** See [it](02_x.ipynb).\n\n## Now"},
    ]  # fmt: skip
    shown = no_gain.entry(cells, 0, Path("20_quantization.ipynb"))
    assert shown.split("\n\n") == [
        "### Quantize the output head, too",
        "```python\n1 + 1\n```",
        "```text\n2\n```",
        "**So.** See [it](notebooks/02_x.ipynb).",
        "[Run it in its chapter](notebooks/20_quantization.ipynb).",
    ]


def test_every_cell_has_a_title_that_says_what_it_tries():
    told = {(chapter, name) for chapter, titles in no_gain.TITLES.items() for name in titles}
    cells = {
        (path.stem, cell["id"].removeprefix("no-gain-"))
        for path in (ROOT / "notebooks").glob("[0-9]*.ipynb")
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]
        if no_gain.is_one(cell)
    }
    assert told == cells
    titles = [title for each in no_gain.TITLES.values() for title in each.values()]
    assert len(titles) == len(set(titles)) and all(len(title.split()) > 3 for title in titles)
