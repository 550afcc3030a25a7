"""The instructor's pages, book/instructor-*.md, held to their chapters: `problems(root)`.

    python tools/instructors.py     a line for each problem, and exit status 1 if there is any

A page has a section for each chapter of its part. Each has the five entries of ENTRIES and three
questions; its numbers are printed by the chapter, and what it shows as code stands there too.
"""

import re
import sys
from pathlib import Path

import nbformat
import prose_numbers

ROOT = Path(__file__).resolve().parent.parent
ENTRIES = ("Goal", "Misconception", "Ask", "Type", "Without machines")
WORDS = range(150, 301)
HEADING = re.compile(r"^## (?:(\d+)\. )?\[([^\]]+)\]\(notebooks/(\w+)\.ipynb\)$", re.MULTILINE)
ENTRY = re.compile(r"^\*\*([A-Z][\w ]+)\.\*\* ?", re.MULTILINE)
QUESTION = re.compile(r"^\d\. \*[^*]+[?:]\*", re.MULTILINE)
CODE = re.compile(r"`([^`]+)`")


def pages(root):
    """The texts of the pages, in order."""
    return [path.read_text(encoding="utf-8") for path in sorted(root.glob("book/instructor-*.md"))]


def sections(text):
    """(number or "", title, chapter, its text) for each section of a page, in order."""
    found = list(HEADING.finditer(text))
    ends = [each.start() for each in found[1:]] + [len(text)]
    for head, end in zip(found, ends, strict=True):
        # The label of the next section belongs to that.
        words = re.sub(r"\n\([\w-]+\)=\s*\Z", "", text[head.end() : end])
        yield head[1] or "", head[2], head[3], words.strip()


def problems(root):
    """Sentences, each with the chapter whose section is meant."""
    each = [section for text in pages(root) for section in sections(text)]
    chapters = [path.stem for path in sorted(root.glob("notebooks/[0-9]*.ipynb"))]
    named = [stem for *_, stem, _ in each]
    if named != (wanted := ["one_sheet", *chapters]):
        yield f"the sections are those of {named}, not of {wanted}"
    for number, title, stem, text in each:
        nb = nbformat.read(root / "notebooks" / f"{stem}.ipynb", as_version=4)
        yield from (f"{stem}: {line}" for line in amiss(number, title, stem, text, nb))


def amiss(number, title, stem, text, nb):
    """What is wrong with one section."""
    heading = re.findall(r"^# ([^:\n]+)", nb.cells[0].source, re.M)[0].strip()
    if (number.zfill(2) if number else "one") != stem.partition("_")[0] or heading != title:
        yield f"its heading is {number} {title}"
    parts = ENTRY.split(text)
    entries = dict(zip(parts[1::2], parts[2::2], strict=True))
    if tuple(entries) != ENTRIES:
        yield f"its entries are {', '.join(entries)}"
        return
    if entries["Goal"].strip().count(". ") or not entries["Goal"].strip().endswith("."):
        yield "its goal is not one sentence"
    if (asked := len(QUESTION.findall(entries["Ask"]))) != 3:
        yield f"{asked} questions, not three"
    if (count := len(re.findall(r"\w+", text))) not in WORDS:
        yield f"{count} words, not {WORDS[0]} to {WORDS[-1]}"
    yield from prose_numbers.unprinted(as_page(nb, text), stem)
    there = "\n".join([cell.id + "\n" + cell.source for cell in nb.cells])
    for code in CODE.findall(text):
        # A method is named with its class, in front of which stand other lines.
        pieces = code.split(".") if re.fullmatch(r"\w+\.\w+", code) else [code]
        if not all(piece in there for piece in pieces):
            yield f"`{code}` stands nowhere in the chapter"
    typed = next(cell.source for cell in nb.cells if "machine" in cell.metadata.get("tags", []))
    if sum(code in typed for code in {*CODE.findall(entries["Type"])}) < 2:
        yield "what is typed names fewer than two pieces of the machine"


def as_page(nb, text):
    """The chapter's code and outputs, with other words."""
    words = nbformat.v4.new_markdown_cell(text, id="section")
    code = [cell for cell in nb.cells if cell.cell_type == "code"]
    # A figure's caption is the chapter's own and is held there.
    bare = [nbformat.from_dict({**cell, "metadata": {}}) for cell in code]
    return nbformat.v4.new_notebook(cells=[words, *bare])


def main():
    lines = list(problems(ROOT))
    print("\n".join(lines), end="\n" if lines else "")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
