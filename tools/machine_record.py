"""What the chapters took when they ran: book/courses/machine.json, which the schedules read.

`tools/notebooks.py record` writes a chapter's line when it has run. Each line has the hash of the
code that ran, so that a page can say which of them are older than their chapter.
"""

import datetime
import hashlib
import json
import os
from importlib.metadata import version
from pathlib import Path

FILE = Path("book") / "courses" / "machine.json"
COMMAND = "python tools/notebooks.py record"
MOST = 5 * 2**29  # 2.5 GiB: what a laptop of 8 GB has beside its system and a browser
BUDGET = 20  # seconds of processor time that CONTRIBUTING allows a chapter
FEW = {1: "one CPU core", 2: "two CPU cores", 4: "four CPU cores"}


def read(root):
    """The record; without a file, one of no chapter."""
    path = root / FILE
    if not path.exists():
        return {"machine": "", "command": COMMAND, "chapters": {}}
    return json.loads(path.read_text(encoding="utf-8"))


def seconds(record, stem):
    """What one chapter took; of one that was never recorded, what it may take."""
    return record["chapters"].get(stem, {"seconds": BUDGET})["seconds"]


def keep(root, path, took, peak):
    """Put what one notebook took into the record, beside what is there of others."""
    found = read(root)
    new = {"code": key(path), "seconds": round(took, 1), "peak": peak}
    new |= {"torch": version("torch"), "date": datetime.date.today().isoformat()}
    found["machine"] = cores()
    found["chapters"] = dict(sorted((found["chapters"] | {path.stem: new}).items()))
    (root / FILE).parent.mkdir(parents=True, exist_ok=True)
    (root / FILE).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def key(path):
    """A hash over the code of a notebook: words and outputs take no time."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    return hashlib.sha256("\0".join(code).encode()).hexdigest()[:16]


def cores():
    """The machine in words: how many cores this process may use."""
    allowed = getattr(os, "sched_getaffinity", None)
    count = len(allowed(0)) if allowed else os.cpu_count() or 1
    return FEW.get(count, f"{count} CPU cores")
