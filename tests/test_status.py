"""The tables of the status page say what the files say."""

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import status  # noqa: E402


@pytest.fixture
def project(tmp_path):
    """A small project: two pins, one chapter, no git."""
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "constraints.txt").write_text("# pins\ntorch==9.8.7\nleft-pad==1.0\n")
    figure = {"cell_type": "code", "source": "1", "metadata": {"tags": ["figure"]}}
    title = {"cell_type": "markdown", "source": "(x)=\n# Weigh it: all", "metadata": {}}
    plain = {"cell_type": "code", "source": "2", "metadata": {}}
    (tmp_path / "notebooks" / "01_x.ipynb").write_text(
        json.dumps({"cells": [title, figure, plain]})
    )
    return tmp_path


def test_versions_are_the_pins(project):
    assert "| torch | 9.8.7 |" in status.versions(project)
    assert "left-pad" not in status.versions(project)


def test_chapters_count_their_cells(project):
    assert "| [01 Weigh it](notebooks/01_x.ipynb) | 2 | 1 | — |" in status.chapters(project)


def test_without_a_record_the_page_says_so(project):
    assert status.records(project) == "Not yet measured on a GPU."
    (project / "book" / "records").mkdir(parents=True)
    record = {"device": "X", "torch": "2", "date": "2026-01-02", "command": "memlab record"}
    (project / "book" / "records" / "x.json").write_text(json.dumps(record))
    assert "| X | 2 | 2026-01-02 | `memlab record` |" in status.records(project)


def test_every_marker_of_the_page_has_a_table():
    page = status.fill((ROOT / "book" / "status.md").read_text(encoding="utf-8"), ROOT)
    assert "<!--" not in page and "| torch | 2." in page


def test_an_unknown_marker_is_refused(project):
    with pytest.raises(ValueError, match="unknown marker 'prices'"):
        status.fill("<!-- prices -->", project)
