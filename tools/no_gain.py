"""The page *It did not save memory*: the cells of Part II whose id begins with no-gain-.

`tools/book.py` puts `collected` where book/no-gain.md says `<!-- collected -->`: the code, what it
printed and why, as the chapter has them, so the page says what the chapters prove.
"""

import json
import re
import tomllib
from pathlib import Path

# What a cell tries, in words: its id alone is a label, and chapters share some.
TITLES = tomllib.loads(Path(__file__).with_name("no_gain_titles.toml").read_text(encoding="utf-8"))
TITLE = re.compile(r"\(([a-z0-9-]+)\)=\n+# +([^\n]+)")


def collected(root):
    """A heading for each chapter that has such cells, and each cell with its result and reason."""
    found = []
    for path in sorted((root / "notebooks").glob("[0-9]*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        if shown := [entry(cells, i, path) for i, cell in enumerate(cells) if is_one(cell)]:
            _, title = TITLE.findall(source(cells[0]))[0]
            found.append(f"## {int(path.stem[:2])}. {title}\n\n" + "\n\n".join(shown))
    return "\n\n".join(found)


def is_one(cell):
    """Whether a cell shows a technique that saves nothing."""
    return cell["cell_type"] == "code" and cell.get("id", "").startswith("no-gain-")


def entry(cells, i, path):
    """One cell: what it tries, its code, what it printed, and the words that follow it."""
    cell = cells[i]
    name = cell["id"].removeprefix("no-gain-")
    title = TITLES.get(path.stem, {}).get(name)
    if title is None:
        raise KeyError(f"no title for {path.stem}, no-gain-{name}, in tools/no_gain_titles.toml")
    parts = [f"### {title}", f"```python\n{source(cell)}\n```"]
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
