"""Where each block stands, and of a label what it is there: the `#:` and `#.` lines of a catalogue.

"kept" alone cannot be translated; as the third column of a table whose rows are optimizers it can.
Both are read where a reader meets the label: in the outputs of the executed notebooks.
"""

import ast
import html
import json
import re
from functools import cache

import sources
from blocks import blocks

from memlab import quizzes as questions

HERE = ("src/memlab", "tools", "book/_ext")
SCRIPTS = ("book/calculator", "book/_static")
QUIZZES = sources.ROOT / "src" / "memlab" / "data" / "quizzes"
CELL = re.compile(r"<t[hd]\b[^>]*>(.*?)</t[hd]>", re.S)
CAPTION = re.compile(r"<caption>(.*?)</caption>", re.S)
TAG = re.compile(r"<[^>]*>")
SHORT = 4  # words of a label, which says nothing of its place itself
FEW = 5  # heads of a table that tell which one it is


def places(name, its_blocks):
    """Block -> (its places, what it is there) of a source; a block without any is not there."""
    if name in (sources.MESSAGES, sources.CALCULATOR):
        found = {block: _of_message(block) for block in its_blocks}
        return {block: told for block, told in found.items() if told[0]}
    chapter = sources.ROOT / "notebooks" / f"{name}.ipynb"
    if chapter.exists():
        return _of_chapter(chapter)
    path = sources.ROOT / "book" / f"{name}.md"
    if not path.exists():
        return {}
    told = _of_markdown(path.read_text(encoding="utf-8"))
    return {block: ([f"book/{name}.md"], told.get(block, "")) for block in its_blocks}


def _of_chapter(path):
    found: dict[str, tuple[list[str], str]] = {}
    for cell in _cells(path):
        text = "".join(cell["source"]) if cell["cell_type"] == "markdown" else ""
        told = _of_markdown(text)
        for block in sources.notebook({"cells": [cell]}):
            where, what = found.get(block, ([], ""))
            found[block] = ([*where, _place(path, cell)], what or told.get(block, ""))
    return found


def _of_markdown(text):
    """Short block -> the table of the text in which it stands, by its heads."""
    found: dict[str, str] = {}
    lines = text.split("\n")
    for at, line in enumerate(lines):
        if line.startswith("|-") and at:
            heads = " | ".join(each.strip() for each in lines[at - 1].strip("| ").split("|"))
            for row in lines[at - 1 :]:
                if not row.startswith("|"):
                    break
                for block in blocks(row):
                    if _short(block):
                        found.setdefault(block, f"in the table {heads}")
    return found


def _place(path, cell):
    return f"{path.relative_to(sources.ROOT).as_posix()}#{cell['id']}"


def _of_message(block):
    context, mark, words = block.rpartition("\x04")
    shown = [
        (place, what)
        for table, place, what in outputs().get(words, ())
        if not mark or table == context
    ]
    where = list(dict.fromkeys(place for place, _ in shown))
    if mark:
        pictured = any(what == f"in the picture “{context}”" for _, what in shown)
        return where, shown[0][1] if pictured else f"in tables whose first column is “{context}”"
    if not where:
        where = literals().get(words, []) + _said().get(words, [])
    told = list(dict.fromkeys(what for _, what in shown if what)) if _short(words) else []
    return where, "\n".join(told[:3])


def _short(block):
    return len(block.split()) <= SHORT


def _cells(path):
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


@cache
def outputs():
    """Text of an output -> (first head of its table or title of its picture, place, what it is)."""
    found: dict[str, list[tuple[str, str, str]]] = {}
    for path in sources.chapters():
        for cell in _cells(path):
            place = _place(path, cell)
            for output in cell.get("outputs", ()):
                shown = output.get("data", {})
                texts = _of_tables("".join(shown.get("text/html", "")))
                texts += _of_picture("".join(shown.get("image/svg+xml", "")))
                lines = "".join(output.get("text", "")).split("\n")
                for table, text, what in [*texts, *(("", line.strip(), "") for line in lines)]:
                    found.setdefault(text, []).append((table, place, what))
    return found


def _of_tables(code):
    """(first head, text, what it is) of each cell of the tables in a piece of HTML."""
    if "<table" not in code:
        return _of_picture(code)
    found = []
    for table in re.findall(r"<table.*?</table>", code, re.S):
        rows = [
            [_text(cell) for cell in CELL.findall(row)]
            for row in re.findall(r"<tr.*?</tr>", table, re.S)
        ]
        heads = rows.pop(0) if "<thead" in table else []
        named = " | ".join(heads[:FEW]).rstrip()  # as a catalogue is written
        texts = [(_text(above), "above a table") for above in CAPTION.findall(table)]
        for at, head in enumerate(heads, 1):
            texts.append((head, f"head of column {at} of the table {named}"))
        for first, *others in rows:
            texts.append((first, f"row of the table {named}"))
            texts += [
                (text, f"row “{first}”, column “{head}”")
                for text, head in zip(others, heads[1:], strict=False)
            ]
        first = next(filter(None, heads), "")  # as memlab.base.table names a table
        found += [(first, *each) for each in texts]
    return found


def _of_picture(code):
    title = re.search(r"<title>(.*?)</title>", code)
    name = html.unescape(title[1]) if title else ""
    told = f"in the picture “{name}”" if title else "in a picture"
    return [(name, html.unescape(text).strip(), told) for text in re.findall(r">([^<>]+)<", code)]


def _text(code):
    return " ".join(html.unescape(TAG.sub("", code)).split())


@cache
def literals():
    """Text -> the files whose code has it."""
    found: dict[str, list[str]] = {}
    for folder in HERE:
        for path in sorted((sources.ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    _note(found, node.value, path)
    for folder in SCRIPTS:
        for path in sorted((sources.ROOT / folder).rglob("*.mjs")):
            for text in re.findall(r'"((?:[^"\\\n]|\\.)+)"', path.read_text(encoding="utf-8")):
                _note(found, text, path)
    for label in questions.labels():
        for text in questions.sentences(label):
            _note(
                found, text, sources.ROOT / "src" / "memlab" / "data" / "quizzes" / f"{label}.toml"
            )
    return found


def _note(found, text, path):
    place = path.relative_to(sources.ROOT).as_posix()
    if place not in found.setdefault(text, []):
        found[text].append(place)


@cache
def _said():
    """Message -> the chapters that said it when they ran."""
    found: dict[str, list[str]] = {}
    for path in sources.chapters():
        for text in sources.said(json.loads(path.read_text(encoding="utf-8"))):
            _note(found, text, path)
    return found
