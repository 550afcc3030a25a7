"""A notebook that runs in a language prints what its page says.

Three light chapters are run in a kernel, in Portuguese, and compared with what tools/i18n stages of
the English outputs: printed text to the character, tables by their cells, pictures by their words.
"""

import html
import json
import os
import re
from pathlib import Path

import lay
import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parent.parent
LANGUAGE = "pt-BR"
LIGHT = ("01_formats", "30_serving", "33_divide_text")
WORDS = re.compile(r">([^<>]*[^\s<>][^<>]*)<")


@pytest.fixture(scope="module")
def staged(tmp_path_factory):
    """The notebooks as `make lab BOOK_LANG=pt-BR` lays them out."""
    return lay.notebooks(LANGUAGE, tmp_path_factory.mktemp("lab"), LIGHT)


def run(path):
    """The notebook after it ran, from a kernel in the language."""
    notebook = nbformat.read(path, as_version=4)
    environment = {**os.environ, "MEMLAB_LANG": LANGUAGE, "MEMLAB_DEVICE": "cpu"}
    where = {"metadata": {"path": str(ROOT / "notebooks")}}
    NotebookClient(notebook, kernel_name="python3", timeout=120, resources=where).execute(
        env=environment
    )
    return notebook


def said(outputs):
    """What a reader sees of a cell's outputs, a text or a label each; a wrapped title is whole."""
    found = []
    for output in outputs:
        if output["output_type"] == "stream":
            found += "".join(output["text"]).split("\n")
        data = output.get("data", {})
        for kind in ("text/html", "image/svg+xml"):
            if kind in data:
                shown = [html.unescape(w) for w in WORDS.findall("".join(data[kind]))]
                found += " ".join(shown).split()
    return [words for words in found if words]


@pytest.mark.parametrize("name", LIGHT)
def test_a_live_notebook_says_what_its_page_says(staged, name):
    page = json.loads((staged / f"{name}.ipynb").read_text(encoding="utf-8"))
    live = run(staged / f"{name}.ipynb")
    for there, here in zip(page["cells"], live.cells, strict=True):
        assert said(here.get("outputs", [])) == said(there.get("outputs", [])), here["id"]
