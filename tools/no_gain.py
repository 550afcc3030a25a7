"""The page *It did not save memory*: the cells whose id begins with no-gain-.

`tools/book.py` puts `collected` where book/no-gain.md says `<!-- collected -->`: a table with a row
for each such cell, and a few of them whole. What a row says is in tools/no_gain.toml, and a test
holds that its numbers are those which the cell printed.
"""

import json
import re
import tomllib
from pathlib import Path

CASES = tomllib.loads(Path(__file__).with_name("no_gain.toml").read_text(encoding="utf-8"))
# Not shown as it stands: the page's script makes the label of a field of it.
FILTER = "Show the cases that have these words"
HEAD = "| technique | when it saves nothing | the bytes | where |\n|---|---|---|---|"


def collected(root):
    """Cases that are worked, with code, result and reason; below them the table of all cases."""
    worked, rows = [], []
    for path, cells in pages(root):
        for i, cell in enumerate(cells):
            if is_one(cell):
                case = case_of(cell, path)
                where = f"[{place(path)}](notebooks/{path.name})"
                rows.append(f"| {case['technique']} | {case['when']} | {case['bytes']} | {where} |")
                if case.get("worked"):
                    worked.append(entry(cells, i, path))
    table = "\n".join([HEAD, *rows])
    shown = f'<div class="memlab-cases">\n\n{FILTER}\n\n{table}\n\n</div>'
    return "\n\n".join(["## Three cases", *worked, "## All cases", shown])


def pages(root):
    """Each notebook of the book that may have such cells, with its cells, in their order."""
    folder = root / "notebooks"
    for path in [*sorted(folder.glob("[0-9]*.ipynb")), folder / "fine_print_smaller.ipynb"]:
        yield path, json.loads(path.read_text(encoding="utf-8"))["cells"]


def place(path):
    """What the link to a page says: a chapter's number."""
    return str(int(path.stem[:2])) if path.stem[:2].isdigit() else "fine print"


def is_one(cell):
    """Whether a cell shows a technique that saves nothing."""
    return cell["cell_type"] == "code" and cell.get("id", "").startswith("no-gain-")


def case_of(cell, path):
    """What the table says of a cell.

    Raises      KeyError for a cell that the file does not know
    """
    name = cell["id"].removeprefix("no-gain-")
    case = CASES.get(path.stem, {}).get(name)
    if case is None:
        raise KeyError(f"no row for {path.stem}, no-gain-{name}, in tools/no_gain.toml")
    return case


def entry(cells, i, path):
    """One cell: what it tries, its code, what it printed, and the words that follow it."""
    cell = cells[i]
    case = case_of(cell, path)
    title = case["technique"]
    parts = [f"### {title[0].upper()}{title[1:]}: {case['when']}"]
    parts.append(f"```python\n{source(cell)}\n```")
    if text := fenced(cell):
        parts.append(text)
    parts += reason(cells[i + 1 :])
    parts.append(f"[Run it in its chapter](notebooks/{path.name}).")
    return "\n\n".join(parts)


def source(cell):
    return "".join(cell["source"])


def printed(cell):
    """The text that a cell gave, streams and results alike."""
    found = []
    for output in cell["outputs"]:
        data = output.get("data", {})
        found.append("".join(output.get("text", data.get("text/plain", ""))))
    return "".join(found).rstrip("\n")


def fenced(cell):
    """That text as a page shows it; nothing for a cell that gave none."""
    return f"```text\n{text}\n```" if (text := printed(cell)) else ""


def reason(following):
    """The words after a cell, up to the next heading; links lead from the page's own folder."""
    first = next((c for c in following if c["cell_type"] == "markdown"), None)
    if first is None:
        return []
    words = re.split(r"^#", source(first), maxsplit=1, flags=re.M)[0].strip()
    return [re.sub(r"\]\((\d\d_\w+\.ipynb)", r"](notebooks/\1", words)] if words else []
