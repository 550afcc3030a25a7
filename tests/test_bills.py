"""The bill of the first page's run: the same in every chapter that shows it before and after."""

import json
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from memlab import text
from memlab.lab.bill import brought_down, largest

ROOT = Path(__file__).resolve().parent.parent
CHAPTERS = sorted((ROOT / "notebooks").glob("[0-9]*.ipynb"))
SMALLER = [path for path in CHAPTERS if 14 <= int(path.stem[:2]) <= 28]
HEADING, ROW = "## The bill, brought down", "maximum of each row"


def cells_of(path):
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


def bills_of(path):
    """{column: peak} of each bill that a chapter shows, as its cell stored it."""
    for output in (one for cell in cells_of(path) for one in cell.get("outputs", [])):
        told = "".join(output.get("data", {}).get("text/html", ""))
        table = BeautifulSoup(told, "html.parser").select_one("table")
        if table is None or ROW not in table.get_text():
            continue
        heads = [head.get_text(strip=True) for head in table.select("thead th")][1:]
        rows = {row.th.get_text(strip=True): row.select("td") for row in table.select("tr")[1:]}
        if "the peak" in rows:
            sizes = [cell.get_text(strip=True) for cell in rows["the peak"]]
            yield dict(zip(heads, sizes, strict=True))


def test_a_column_has_one_peak_in_all_chapters():
    """The run before any change, and each change that more than one chapter makes."""
    found, shown = {}, 0
    for path in CHAPTERS:
        for bill in bills_of(path):
            shown += 1
            for name, peak in bill.items():
                if "so far" not in name:  # what was changed before differs from page to page
                    assert found.setdefault(name, peak) == peak, (path.stem, name)
    assert found["bf16"] == found["plain loop"] == text(largest("bf16")["peak"])
    assert found["mixed precision"] == found["autocast"] == text(largest("autocast")["peak"])
    assert shown >= 10


@pytest.mark.parametrize("path", SMALLER, ids=lambda path: path.stem)
def test_each_chapter_of_part_two_ends_with_the_bill(path):
    cells = cells_of(path)
    heads = ["".join(cell["source"]).split("\n")[0] for cell in cells]
    assert HEADING in heads, "no section with the bill before and after this chapter's change"
    at, end = heads.index(HEADING), heads.index("## Key points")
    assert "GiB" in json.dumps([cell.get("outputs", []) for cell in cells[at:end]])


def test_a_bill_after_other_changes_says_so():
    bill = str(brought_down("inside", before={"checkpoint": "block"}, step_in_backward=True))
    assert "bf16, so far" in bill and "mixed precision, inside" in bill
    assert "so far" not in str(brought_down("checkpointed", checkpoint="block"))


def test_a_name_of_nothing_and_a_change_of_nothing_are_refused():
    with pytest.raises(ValueError, match="so_far='checkpointed' names no change"):
        brought_down("fused", so_far="checkpointed", optimizer_impl="fused")
    with pytest.raises(ValueError, match="changes no field of Run"):
        brought_down("nothing", before={"checkpoint": "block"})
