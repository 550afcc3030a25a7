"""A notebook that runs in a language shows what its page shows.

Four light chapters are run in a kernel, as `make lab BOOK_LANG=…` lays them out, and each output
is compared to the character with the one that the page has: text, tables and pictures.
"""

import json
import os
from pathlib import Path

import lay
import nbformat
import outputs
import pytest
from nbclient import NotebookClient

import notebooks

ROOT = Path(__file__).resolve().parent.parent
LIGHT = {  # of those whose outputs stand in both languages
    "27_divide_text": "zh-TW",
    "30_predicted_28": "pt-BR",
    "31_status_report": "zh-TW",
    "28_choosing": "pt-BR",
}


def run(path, language):
    """The notebook after it ran, from a kernel in the language."""
    notebook = nbformat.read(path, as_version=4)
    environment = {**os.environ, "MEMLAB_LANG": language, "MEMLAB_DEVICE": "cpu"}
    where = {"metadata": {"path": str(ROOT / "notebooks")}}
    NotebookClient(notebook, kernel_name="python3", timeout=120, resources=where).execute(
        env=environment
    )
    notebooks.clean(notebook)  # of the pieces that a kernel cuts a stream into
    return notebook


@pytest.mark.sample(2)  # one of each language
@pytest.mark.parametrize("name", LIGHT)
def test_a_live_notebook_shows_what_its_page_shows(tmp_path, name):
    language = LIGHT[name]
    path = lay.notebooks(language, tmp_path, [name]) / f"{name}.ipynb"
    page = json.loads(path.read_text(encoding="utf-8"))
    for there, here in zip(page["cells"], run(path, language).cells, strict=True):
        found = list(map(outputs.shown, here.get("outputs", [])))
        assert found == list(map(outputs.shown, there.get("outputs", []))), here["id"]
