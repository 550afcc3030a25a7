"""The words inside a formula are the reader's, its mathematics is everybody's."""

import json

import catalogue
import formulas
import lay
import pytest
import sources
from latex2mathml.converter import convert

from memlab.base.message import CONTEXT

TEXT = r"""Here $\mathrm{peak\ falls\ by}$ `$\text{code}$` is
$$
W + 8{,}192 \qquad \text{for } k > 1.5 \text{ micro-batches} + b_\mathrm{bf16} \text{.detach()}
$$
"""
WORDS = {
    f"formula{CONTEXT}peak falls by": "o pico cai",
    f"formula{CONTEXT}for": "para",
    f"formula{CONTEXT}micro-batches": "microlotes",
    "for": "a word of a table",
}
SAID = r"""Here $\text{o pico cai}$ `$\text{code}$` is
$$
W + 8.192 \qquad \text{para } k > 1{,}5 \text{ microlotes} + b_\mathrm{bf16} \text{.detach()}
$$
"""


def test_the_words_of_a_formula_are_entries_and_names_and_code_are_none():
    assert formulas.words(TEXT) == [key for key in WORDS if CONTEXT in key]


def test_a_formula_is_said_with_its_numbers_as_the_language_writes_them():
    assert formulas.said(TEXT, WORDS, "pt-BR") == SAID
    assert formulas.said(TEXT, {}, "zh-TW") == TEXT


def formulas_of(notebook):
    """Each formula of its Markdown, without the code that the pattern takes along."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    texts = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
    return [found[2] for text in texts for found in formulas.FORMULA.finditer(text) if found[2]]


@pytest.mark.sample(1)
@pytest.mark.parametrize("language", catalogue.languages())
def test_every_formula_of_a_chapter_is_read_in_each_language(language, tmp_path):
    folder = lay.notebooks(language, tmp_path)
    for path in sources.chapters():
        found = formulas_of(folder / path.name)
        assert len(found) == len(formulas_of(path)) > 0, path.name
        for formula in found:
            assert convert(formula.strip("$")).startswith("<math")
