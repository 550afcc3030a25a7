"""No chapter lays a table out by f-strings: a table is a value, so every language and phone has it.

A line of code counts as laid out by hand where it gives a value a width or a side in an f-string
(`{size:>12,}`), fills text with ljust, rjust or center, or prints words with a gap of three spaces.
"""

import ast
import re
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).resolve().parent.parent
CHAPTERS = sorted((ROOT / "notebooks").glob("*.ipynb"))
# [fill and side] [sign] [#] [0] width: zeros in front are digits of a number, as in {bits:08b}.
SPEC = re.compile(r"(?:.?[<>=^])?[+\- ]?#?(?P<zero>0?)(?P<width>\d+)")
GAP = re.compile(r" {3,}")


def by_hand(source):
    """The numbers of the lines of code that lay out a table."""
    return sorted(set(_found(ast.parse(source))))


def _found(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.FormattedValue) and isinstance(node.format_spec, ast.JoinedStr):
            spec = "".join(_texts(node.format_spec))
            match = SPEC.match(spec)
            if spec.startswith(("<", ">", "^")) or (match and not match["zero"]):
                yield node.lineno
        if isinstance(node, ast.Attribute) and node.attr in ("ljust", "rjust", "center"):
            yield node.lineno
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "print":
            for said in node.args:
                if any(GAP.search(words) for words in _texts(said)):
                    yield node.lineno


def _texts(node):
    """The fixed words of a string or an f-string."""
    parts = node.values if isinstance(node, ast.JoinedStr) else [node]
    return [p.value for p in parts if isinstance(p, ast.Constant) and isinstance(p.value, str)]


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.name)
def test_a_chapter_lays_out_no_table_by_hand(path):
    cells = nbformat.read(path, as_version=4).cells
    code = [(cell.id, cell.source) for cell in cells if cell.cell_type == "code"]
    found = {name: [source.splitlines()[n - 1] for n in by_hand(source)] for name, source in code}
    assert {name: lines for name, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    "line",
    [
        'print(f"{name:>12}")',
        'print(f"{size:11,} B")',
        'row = f"{share:6.1%} of it"',
        'print("model      bytes")',
        'print(f"{name}   {size}")',
        "print(name.ljust(12), size)",
        'print(f"{name:{width}}", f"{size:<9}")',
    ],
)
def test_a_line_of_a_table_is_seen(line):
    assert by_hand(line) == [1]


@pytest.mark.parametrize(
    "line",
    [
        'print(f"{size:,} B, {share:.1%} of it, {bits:08b}, {gap:+} B")',
        'table.append([name, f"{size:,}", f"{ratio:.2f}×"])',
        'print("a sentence, and another one")',
    ],
)
def test_a_sentence_with_figures_is_none(line):
    assert by_hand(line) == []
