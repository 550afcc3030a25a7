"""Store the tables of claims anew in the chapters that show them, without running the chapters.

    python tools/claims_tables.py           store them
    python tools/claims_tables.py --check   exit with 1 if one is not what memlab shows now

A chapter's table is all of data/claims/<note>.json and nothing that the chapter computes, so a
claim that says something in other words needs no new run. With the table goes the list of what
memlab said in it, by which a language finds its words; its own tables are made by a run of the
chapter in it, python tools/i18n outputs.
"""

import json
import re
import sys
import tempfile
from pathlib import Path

import notebooks
from memlab.base import messages
from memlab.files.claims import Claims, read

ROOT = Path(__file__).resolve().parent.parent
TABLE = '<div class="memlab-claims"'


def tables():
    """The chapters as they should be, by path: those that show the claims of a note."""
    found = {}
    for path in sorted((ROOT / "notebooks").glob("[0-9]*.ipynb")):
        chapter = json.loads(path.read_text(encoding="utf-8"))
        shown = [data for data in _shown(chapter) if "".join(data["text/html"]).startswith(TABLE)]
        code = "\n".join("".join(cell["source"]) for cell in chapter["cells"])
        if shown:
            (note,) = set(re.findall(r'Claims\(read\("(\d+)"\)\)', code))
            page, plain, said = table(note)
            for data in shown:
                data["text/html"], data["text/plain"] = [page], plain.splitlines(keepends=True)
            known = chapter["metadata"]["memlab"]
            known["said"] = sorted({*known["said"], *said})
            found[path] = json.dumps(chapter, indent=1, ensure_ascii=False) + "\n"
    return found


def table(note):
    """The claims of a note as HTML and as text, and the messages that memlab said in it."""
    with tempfile.TemporaryDirectory() as folder:
        heard = Path(folder, "said.jsonl")
        before, messages.HEARD = messages.HEARD, str(heard)
        messages._heard.clear()
        try:
            claims = Claims(read(note))
            page, plain = claims._repr_html_(), repr(claims)
        finally:
            messages.HEARD = before
            messages._heard.clear()
        lines = heard.read_text(encoding="utf-8").splitlines()
    return page, plain, {*filter(notebooks.is_message, map(json.loads, lines))}


def _shown(chapter):
    for cell in chapter["cells"]:
        for output in cell.get("outputs", []):
            if "text/html" in output.get("data", {}):
                yield output["data"]


def main(arguments):
    wanted = tables()
    stale = [path for path, text in wanted.items() if path.read_text(encoding="utf-8") != text]
    if "--check" in arguments and stale:
        names = ", ".join(path.name for path in stale)
        sys.exit(f"not what memlab shows now: {names}; run tools/claims_tables.py")
    for path in stale:
        path.write_text(wanted[path], encoding="utf-8")
        print(path.name)


if __name__ == "__main__":
    main(sys.argv[1:])
