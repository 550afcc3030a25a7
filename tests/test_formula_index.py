"""The index of formulas says what the functions of memlab.terms say, one row each."""

import importlib
import pkgutil
import re
from pathlib import Path

import formula_index
import pytest

from memlab import adapters, terms

ROOT = Path(__file__).resolve().parent.parent


MODULES = [
    importlib.import_module(f"{room.__name__}.{each.name}")
    for room in (terms, adapters)
    for each in pkgutil.iter_modules(room.__path__)
]
SHEET = formula_index.index(ROOT)
# Functions whose result no formula says: lists, and a simulation.
NO_FORMULA = {"copies", "numel", "replay"}


def test_one_row_for_each_public_function():
    rows = re.findall(r'<tr><td><samp lang="en"><code>(\w+)</code></samp></td>', SHEET)
    functions = [f.__name__ for module in MODULES for f in formula_index.public(module)]
    assert sorted(rows) == sorted(functions)
    assert len(rows) > 50
    assert all(row.count("<td>") == 5 for row in re.findall(r"<tr><td>.*?</tr>", SHEET))


def test_every_formula_comes_from_a_docstring():
    for module in MODULES:
        for function in formula_index.public(module):
            name = function.__name__
            formula = formula_index.part(function.__doc__.replace("\n    ", "\n"), "Formula")
            assert formula or name in NO_FORMULA, f"{module.__name__}.{name} has no Formula"


def test_a_row_leads_to_its_chapter():
    row = SHEET[SHEET.index("<code>kv_cache</code>") :].partition("</tr>")[0]
    letters = " · ".join(f"<em>{letter}</em>" for letter in "LBTKHb")
    assert f"2 · {letters}" in row and "<em>K</em> &lt; <em>N</em>" in row
    assert '<a href="https://arxiv.org/abs/1911.02150">1911.02150</a>' in row
    assert '<a href="notebooks/11_kv_cache.html">11</a>' in row
    chapters = [int(n) for n in re.findall(r'<a href="notebooks/[^"]*">(\d+)</a>', SHEET)]
    assert chapters == sorted(chapters)


def test_the_letters_are_those_of_the_notation_page():
    line = formula_index.letters(ROOT)
    assert line.startswith("*L* layers · *D* model width") and "*P* parameters" in line
    assert len(line.split(" · ")) == 11


def test_a_changed_docstring_changes_the_sheet():
    def rows(count):
        """Rows of a table.

        Formula     3 · P_tied · b, at [least] k_x
                    copy      C * 2
        Unit        rows, a whole number
        Source      arXiv:1234.56789, see https://example.org/a_b and `c_d`
        """

    assert formula_index.row(rows, "[9](x)") == (
        r"| `rows` | 3 · *P*{sub}`tied` · *b*, at \[least\] k\_x; copy: *C* \* 2 | rows | "
        r"[1234.56789](https://arxiv.org/abs/1234.56789), see [example.org]"
        r"(https://example.org/a_b) and `c_d` | [9](x) |"
    )


@pytest.mark.parametrize(
    ("text", "typeset"),
    [
        ("2 · L · K, the inputs of q, k, v", "2 · *L* · *K*, the inputs of q, k, v"),
        ("k > 1: T - new", r"*k* \> 1: *T* - new"),
        ("A head of GPT-2, `P`", "A head of GPT-2, `P`"),
    ],
)
def test_letters_are_set_in_italics(text, typeset):
    assert formula_index.typeset(text) == typeset
