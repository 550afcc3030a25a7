"""The box on one run and its many peaks: each figure is simulated again, and pages lead to it."""

import re
from pathlib import Path

import nbformat
import pytest

from memlab import Model, Run, text
from memlab.step import simulate
from memlab.step.core.moments import hills

ROOT = Path(__file__).resolve().parent.parent
LLAMA = Model.preset("llama-3-8b")
# The figures that only this run has, and so the pages that owe a link to the box.
ITS_OWN = re.compile(r"\b(75\.39|71\.33|97\.78|105\.9) GiB")
RUNS = {
    ("transformers, a loop of your own", "foreach"): Run(),
    ("transformers, a loop of your own", "fused"): Run(optimizer_impl="fused"),
    ("transformers, `Trainer`", "fused"): Run(loop="trainer"),
    ("transformers, TRL's `SFTTrainer` without checkpoints", "fused"): Run(
        loop="sft", checkpoint="none"
    ),
    ("this book's blocks, a loop of your own", "foreach"): Run(implementation="memlab"),
    ("this book's blocks, a loop of your own", "fused"): Run(
        implementation="memlab", optimizer_impl="fused"
    ),
}


def box():
    """The cells of the table on the page, row by row."""
    page = (ROOT / "book" / "anatomy.md").read_text(encoding="utf-8")
    part = page.partition("(one-run)=")[2].partition("\n- **AdamW")[0]
    rows = [re.split(r" *\| *", line.strip("| ")) for line in part.splitlines() if "|" in line]
    return rows[0], rows[2:]


def test_the_box_has_each_run_once():
    _, rows = box()
    assert [tuple(row[:2]) for row in rows] == list(RUNS)


@pytest.mark.parametrize("row", box()[1], ids=lambda row: f"{row[0]}, {row[1]}")
def test_each_peak_and_its_hill_are_those_of_the_run(row):
    run = RUNS[row[0], row[1]].replace(batch=1)
    for head, said in zip(box()[0][2:], row[2:], strict=True):
        tokens = int(head.removesuffix(" tokens").replace(",", ""))
        found = hills(simulate(LLAMA, "bf16", run.replace(tokens=tokens)))
        tops = {name: hill.total() for name, hill in found.items()}
        highest = max(tops, key=lambda name: tops[name])
        assert said == f"{text(tops[highest])}, {highest}"


PAGES = [*sorted((ROOT / "notebooks").glob("[0-9]*.ipynb")), ROOT / "README.md"]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_a_page_that_says_one_of_these_peaks_leads_to_the_box(path):
    source = path.read_text(encoding="utf-8")
    words = source
    if path.suffix == ".ipynb":
        cells = nbformat.reads(source, as_version=4).cells
        words = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    if ITS_OWN.search(words):
        assert "#one-run" in words, f"{path.name} says {ITS_OWN.search(words)[0]}"
