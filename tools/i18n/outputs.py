"""What a chapter prints in a language, kept as a run in that language gave it.

    book/locale/<language>/outputs/<chapter>.json     only what differs from the English chapter

A page has no kernel, and `make book` no torch, so the outputs are made beforehand by `python
tools/i18n outputs`. Nothing is taken out of finished English text: tables, sentences and pictures
are those that the code gives when MEMLAB_LANG names the language. A file also holds the hash of all
that it was made from; where that has changed since, the file is stale and the page stays English.
"""

import ast
import hashlib
import json
import os
import re
import sys
import tempfile
from functools import cache
from pathlib import Path
from threading import Lock

import catalogue
import sources

sys.path.append(str(sources.ROOT / "tools"))
import answers  # noqa: E402
import code_key  # noqa: E402

from memlab.base.messages import CONTEXT  # noqa: E402
from memlab.base.messages import catalogue as messages_of  # noqa: E402

PLOT = sources.ROOT / "src" / "memlab" / "plot"
# Two languages run side by side, and CPython 3.11 cannot parse in two threads: GH-106905.
PARSING = Lock()
COMMENT = re.compile(r"^[ \t]*#.*\n?", re.M)  # changes nothing that a cell prints
STALE = "its outputs are those of other code: python tools/i18n outputs"


def path_of(language, name):
    return catalogue.folder(language) / "outputs" / f"{name}.json"


def kept(language, path):
    """What the file of a chapter holds, if it is not stale: cells, and answers of sliders.

    Shapes      cells: id -> the outputs of the cell, each None where it is as in English
                questions: as tools/answers.py keeps them
    Result      None where there is no such file, or an old one
    """
    file = path_of(language, path.stem)
    if not file.exists():
        return None
    found = json.loads(file.read_text(encoding="utf-8"))
    return found if found["made of"] == key(language, path, found["said"]) else None


def stale(language):
    """The chapters whose outputs a language lacks, or has of something else than is there now."""
    return [path for path in sources.chapters() if kept(language, path) is None]


def key(language, path, also):
    """A hash over all that the outputs were made from, as far as files show it.

    Formula     the code of the cells without comments, and of what draws their pictures; their
                English outputs, all English answers of the sliders, and what the language says of
                each message that memlab used
    """
    content = json.loads(path.read_text(encoding="utf-8"))
    cells = [cell for cell in content["cells"] if cell["cell_type"] == "code"]
    said = sorted({*sources.said(content), *also})
    words = messages_of(language)
    told = [words.get(text, text) for text in said]
    senses = [f"{table}{CONTEXT}{one}" for table, one in sources.SENSES if {table, one} <= {*said}]
    made = [
        [COMMENT.sub("", _joined(cell["source"])).strip() for cell in cells],
        [list(map(shown, cell["outputs"])) for cell in cells],
        answers.kept_of(path).get("questions", []),
        [*told, *map(words.get, senses)],
        drawn_by("\n".join(_joined(cell["source"]) for cell in cells)),
    ]
    return hashlib.sha256(json.dumps(made, ensure_ascii=False).encode()).hexdigest()


@cache
def drawn_by(code):
    """The code that lays out the pictures that a chapter asks memlab.plot for.

    Where their words go depends on a language, and the English picture may stay as it was.
    """
    with PARSING:
        trees = {path.stem: ast.parse(path.read_text("utf-8")) for path in PLOT.glob("*.py")}
        tree = ast.parse(code)
    doors = [node for node in trees["__init__"].body if isinstance(node, ast.ImportFrom)]
    asked = {alias.name for node in _imports(tree, "memlab.plot") for alias in node.names}
    left = [f"{node.module}" for node in doors if asked & {alias.name for alias in node.names}]
    found = set()
    while left:
        found.add(name := left.pop())
        nodes = ast.walk(trees[name])
        near = (f"{node.module}" for node in nodes if isinstance(node, ast.ImportFrom))
        left += [each for each in near if each in trees and each not in found]
    return [code_key.bare(trees[name]) for name in sorted(found)]


def _imports(tree, module):
    return (n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module == module)


def shown(output):
    """What an output shows: the text of a stream, or its data by kind."""
    if output["output_type"] == "stream":
        return _joined(output["text"])
    return {kind: _joined(data) for kind, data in output.get("data", {}).items()}


def put(cell, outputs):
    """Give a cell of the English chapter the outputs that it has in a language, in place."""
    for output, new in zip(cell["outputs"], outputs, strict=True):
        if isinstance(new, str):
            output["text"] = new
        elif new:
            output["data"] = dict(new)


def make(language, path):
    """Run a chapter in a language and keep what it prints.

    Raises      ValueError where a cell has other outputs than the English one: more, or of
                another kind
    """
    import notebooks

    english = json.loads(path.read_text(encoding="utf-8"))
    notebook, said, questions = run(language, path)
    cells = {}
    for cell, new in zip(english["cells"], notebook["cells"], strict=True):
        here, there = (list(map(shown, each.get("outputs", []))) for each in (cell, new))
        if list(map(_kind, here)) != list(map(_kind, there)):
            raise ValueError(f"{path.name}, cell {cell['id']}: in {language} it shows other kinds")
        if here != there:
            pairs = zip(here, there, strict=True)
            cells[cell["id"]] = [None if a == b else b for a, b in pairs]
    also = sorted(filter(notebooks.is_message, said - set(sources.said(english))))
    found = {"made of": key(language, path, also), "said": also, "cells": cells}
    if questions:
        found["questions"] = questions
    file = path_of(language, path.stem)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(found, ensure_ascii=False, indent=0) + "\n", encoding="utf-8")


def run(language, path):
    """A chapter run in a language: its cells, the messages it used, the answers of its sliders."""
    import nbformat
    from nbclient import NotebookClient

    import notebooks

    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        heard, asked = Path(folder, "said.jsonl"), Path(folder, "answers.jsonl")
        environment = {
            **os.environ,
            "MEMLAB_LANG": language,
            "MEMLAB_DEVICE": "cpu",
            "MEMLAB_HEARD": str(heard),
            "MEMLAB_ANSWERS": str(asked),
        }
        client = NotebookClient(
            notebook,
            kernel_name="python3",
            timeout=900,
            record_timing=False,
            store_widget_state=False,
            resources={"metadata": {"path": str(path.resolve().parent)}},
        )
        client.execute(env=environment)
        lines = heard.read_text(encoding="utf-8").splitlines() if heard.exists() else []
        questions = answers.questions_in(asked)
    notebooks.clean(notebook)
    return json.loads(nbformat.writes(notebook)), set(map(json.loads, lines)), questions


def _kind(output):
    return "text" if isinstance(output, str) else sorted(output)


def _joined(data):
    return "".join(data) if isinstance(data, list) else data
