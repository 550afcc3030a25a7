"""Write down every answer to the questions that chapters ask with sliders, for their pages.

    python tools/answers.py [PATH …]     run these notebooks, or those whose code has changed

A page has no kernel, but a question has few answers: its sliders stop at a handful of values. Each
chapter is run once more with MEMLAB_ANSWERS set, under which `memlab.widgets.ask` writes all of
them, and the page shows the one that its sliders ask for (book/_static/questions.js).

    book/_static/answers/<notebook>.json     the questions of a notebook, and a hash of its code
    book/_static/answers/index.json          which notebooks have such a file
"""

import hashlib
import json
import os
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "book" / "_static" / "answers"
# The pages allow no style inside them; the size of a picture is the stylesheet's business.
STYLE = ' style="max-width:100%;height:auto"'
MOST = 400_000  # bytes of one file: more is no small calculator


def code_of(notebook):
    """A hash over the code that leads to the questions."""
    cells = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    last = max((i for i, source in enumerate(cells) if "ask(" in source), default=-1)
    return hashlib.sha256("\n".join(cells[: last + 1]).encode()).hexdigest(), last


def asked(path):
    """Run a notebook as far as its last question; the questions with all their answers."""
    notebook = nbformat.read(path, as_version=4)
    key, last = code_of(notebook)
    if last < 0:
        return None
    codes = [cell for cell in notebook.cells if cell.cell_type == "code"]
    notebook.cells = codes[: last + 1]
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder, "answers.jsonl")
        environment = {**os.environ, "MEMLAB_ANSWERS": str(kept), "MEMLAB_DEVICE": "cpu"}
        client = NotebookClient(
            notebook,
            kernel_name="python3",
            timeout=600,
            resources={"metadata": {"path": str(path.resolve().parent)}},
        )
        client.execute(env=environment)
        questions = [json.loads(line) for line in kept.read_text(encoding="utf-8").splitlines()]
    for question in questions:
        question["answers"] = [answer.replace(STYLE, "") for answer in question["answers"]]
    return {"code": key, "questions": questions}


def write(path):
    """Write the file of a notebook."""
    try:
        found = asked(path)
    except Exception as error:
        return f"{path.name}: {error}"
    if found is None:
        return None
    text = json.dumps(found, ensure_ascii=False, separators=(",", ":"))
    if len(text) > MOST:
        return f"{path.name}: {len(text):,} bytes of answers; at most {MOST:,} are kept"
    (TARGET / f"{path.stem}.json").write_text(text + "\n", encoding="utf-8")
    return None


def stale():
    """Notebooks whose file is missing or was made from other code."""
    found = []
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        key, last = code_of(nbformat.read(path, as_version=4))
        file = TARGET / f"{path.stem}.json"
        if last >= 0 and (not file.exists() or json.loads(file.read_text())["code"] != key):
            found.append(path)
    return found


def main(arguments):
    TARGET.mkdir(parents=True, exist_ok=True)
    paths = [Path(each) for each in arguments] or stale()
    with ThreadPoolExecutor(2) as pool:
        wrong = [line for line in pool.map(write, paths) if line]
    names = sorted(path.stem for path in TARGET.glob("*.json") if path.stem != "index")
    (TARGET / "index.json").write_text(json.dumps(names) + "\n", encoding="utf-8")
    print("\n".join(wrong) if wrong else f"{len(paths)} notebooks asked")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
