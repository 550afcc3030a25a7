"""A page that prints a peak of the one run leads to the table of its many peaks."""

import re
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).resolve().parent.parent
# The figures that only this run has, and so the pages that owe a link to the table.
ITS_OWN = re.compile(r"\b(75\.39|71\.33|97\.78|105\.9) GiB")

PAGES = [*sorted((ROOT / "notebooks").glob("[0-9]*.ipynb")), ROOT / "README.md"]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_a_page_that_says_one_of_these_peaks_leads_to_the_table(path):
    source = path.read_text(encoding="utf-8")
    words = source
    if path.suffix == ".ipynb":
        cells = nbformat.reads(source, as_version=4).cells
        words = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    if ITS_OWN.search(words):
        assert "#one-run" in words, f"{path.name} says {ITS_OWN.search(words)[0]}"
