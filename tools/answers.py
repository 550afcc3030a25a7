"""Write down every answer to the questions that chapters ask with sliders, for their pages.

    python tools/answers.py [PATH …]          ask these notebooks, or all, and write what is new
    python tools/answers.py check [PATH …]    write nothing; exit status 1 if anything is new

A page has no kernel, but a question has few answers: its sliders stop at a handful of values. Each
chapter is run once more with MEMLAB_ANSWERS set, under which `memlab.widgets.ask` writes all of
them, and the page shows the one that its sliders ask for (book/_static/questions.js). Under
`pytest --nbval` the chapters run anyway: conftest.py holds their answers against the files.

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
FAILED = "a cell failed: "


def code_of(notebook):
    """A hash over the code that leads to the questions."""
    cells = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    last = max((i for i, source in enumerate(cells) if "ask(" in source), default=-1)
    return hashlib.sha256("\n".join(cells[: last + 1]).encode()).hexdigest(), last


def asked(path):
    """Run a notebook as far as its last question; the questions with all their answers."""
    notebook = nbformat.read(path, as_version=4)
    last = code_of(notebook)[1]
    if last < 0:
        return []
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
        return questions_in(kept)


def questions_in(file):
    """The questions that a kernel wrote into the file that MEMLAB_ANSWERS named, as pages ask."""
    if not file.exists():
        return []
    questions = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    for question in questions:
        question["answers"] = [answer.replace(STYLE, "") for answer in question["answers"]]
    return questions


def kept_of(path):
    """What the file of a notebook holds; an empty object where there is none."""
    file = TARGET / f"{path.stem}.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


def difference(path, questions):
    """What the file of a notebook says otherwise than its questions did just now, in words."""
    kept = kept_of(path)
    if not kept and not questions:
        return ""
    if kept.get("code") != code_of(nbformat.read(path, as_version=4))[0]:
        return "the code changed"
    before = kept["questions"]
    if len(before) != len(questions):
        return f"{len(questions)} questions, {len(before)} are kept"
    for old, new in zip(before, questions, strict=True):
        if (old["question"], old["controls"]) != (new["question"], new["controls"]):
            return f"another question: {new['question']}"
        for at, (one, other) in enumerate(zip(old["answers"], new["answers"], strict=True)):
            if one != other:
                return f"{new['question']} Another answer at {place(new['controls'], at)}"
    return ""


def place(controls, at):
    """Where the sliders stand for one of the answers, the last of them changing fastest."""
    found: list[str] = []
    for control in reversed(controls):
        at, value = divmod(at, len(control["values"]))
        found.insert(0, f"{control['label']} {control['values'][value]}")
    return ", ".join(found)


def look(path):
    """Ask a notebook again: its path, its questions, and what its file says otherwise."""
    try:
        questions = asked(path)
    except Exception as error:
        return path, [], f"{FAILED}{error}"
    return path, questions, difference(path, questions)


def stale(paths=()):
    """Notebooks whose file is missing or says something else than their code says now.

    A file goes out of date with any formula that an answer is made of, so each notebook is asked.
    """
    paths = paths or sorted((ROOT / "notebooks").glob("*.ipynb"))
    with ThreadPoolExecutor(2) as pool:
        return [found for found in pool.map(look, paths) if found[2]]


def write(path, questions):
    """Write the file of a notebook; what is wrong with it, in words."""
    file = TARGET / f"{path.stem}.json"
    found = {"code": code_of(nbformat.read(path, as_version=4))[0], "questions": questions}
    text = json.dumps(found, ensure_ascii=False, separators=(",", ":"))
    if len(text) > MOST:
        return f"{path.name}: {len(text):,} bytes of answers; at most {MOST:,} are kept"
    if questions:
        file.write_text(text + "\n", encoding="utf-8")
    else:
        file.unlink(missing_ok=True)
    return ""


def main(arguments):
    check, wrong = arguments[:1] == ["check"], 0
    TARGET.mkdir(parents=True, exist_ok=True)
    for path, questions, why in stale([Path(each) for each in arguments[check:]]):
        print(f"{path.name}: {why}")
        if check or why.startswith(FAILED):
            wrong += 1
        elif refused := write(path, questions):
            print(refused)
            wrong += 1
    if not check:
        names = sorted(path.stem for path in TARGET.glob("*.json") if path.stem != "index")
        (TARGET / "index.json").write_text(json.dumps(names) + "\n", encoding="utf-8")
    if not wrong:
        print("all notebooks were asked")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
