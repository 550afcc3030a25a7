"""The prose repeats only what a cell printed, and the test sees when it does not."""

from pathlib import Path

import nbformat
import prose_numbers
import pytest

ROOT = Path(__file__).resolve().parent.parent


CHAPTERS = sorted((ROOT / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.name)
def test_every_number_is_printed(path):
    nb = nbformat.read(path, as_version=4)
    assert list(prose_numbers.unprinted(nb, path.stem)) == []


def test_the_list_of_exceptions_is_short_and_needed():
    allowed = prose_numbers._allowed()
    assert sum(map(len, allowed.values())) <= 8
    for chapter, entries in allowed.items():
        nb = nbformat.read(ROOT / "notebooks" / f"{chapter}.ipynb", as_version=4)
        missed = "\n".join(prose_numbers.unprinted(nb, chapter, allowed={}))
        for said, reason in entries.items():
            assert repr(said) in missed, f"{chapter}: {said} is printed; the exception can go"
            assert len(reason) > 20, f"{chapter}: {said} has no reason"


def page(prose, output="", code="1", alt=""):
    """A page of one Markdown cell and one code cell."""
    words = nbformat.v4.new_markdown_cell(prose, id="said")
    meta = {"mystnb": {"image": {"alt": alt}}}
    printed = [nbformat.v4.new_output("stream", text=output)]
    cell = nbformat.v4.new_code_cell(code, id="shown", outputs=printed, metadata=meta)
    return nbformat.v4.new_notebook(cells=[words, cell])


def page_with(nb, words):
    """A page's code and outputs, with other words."""
    cells = [cell for cell in nb.cells if cell.cell_type == "code"]
    said = [nbformat.v4.new_markdown_cell(one, id=f"said-{i}") for i, one in enumerate(words)]
    return nbformat.v4.new_notebook(cells=said + cells)


def missing(*arguments, **more):
    return list(prose_numbers.unprinted(page(*arguments, **more), allowed={}))


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.name)
def test_a_number_that_no_cell_printed_is_found_in_any_chapter(path):
    nb = nbformat.read(path, as_version=4)
    before = list(prose_numbers.unprinted(nb, path.stem))
    last = [cell for cell in nb.cells if cell.cell_type == "markdown"][-1]
    last.source += "\n\nTogether 3,141.59 GiB, 271,828,182 bytes and 62.83 %, for 16,180 tokens."
    found = list(prose_numbers.unprinted(nb, path.stem))[len(before) :]
    assert len(found) == 4
    assert f"cell {last.id}" in found[0] and "'3,141.59 GiB'" in found[0]
    assert f"prose_allowed.toml under [{path.stem}]" in found[0]


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.name)
def test_a_wrong_last_digit_is_found(path):
    nb = nbformat.read(path, as_version=4)
    said = [
        (number, unit)
        for _, words, _ in prose_numbers._prose(nb)
        for number, unit in prose_numbers.quantities(words)
        if len(number) > 3  # a shorter one may well be printed elsewhere on the page
    ]
    wrong = {f"{n[:-1]}{7 if n[-1] == '3' else 3} {unit}" for n, unit in said}
    lines = "\n".join(prose_numbers.unprinted(page_with(nb, wrong), allowed={}))
    assert len(wrong) >= 4
    assert sum(repr(one) in lines for one in wrong) >= 0.9 * len(wrong)


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.name)
def test_a_changed_output_leaves_its_number_unprinted(path):
    nb = nbformat.read(path, as_version=4)
    for cell in nb.cells:
        if cell.cell_type == "code":
            cell.outputs = []
    assert len(list(prose_numbers.unprinted(nb, path.stem))) > 3


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("35 GB are 32.6 GiB", [("35", "GB"), ("32.6", "GiB")]),
        ("8, 10 and 12 bytes per parameter", [("8", "bytes"), ("10", "bytes"), ("12", "bytes")]),
        ("**26.1 %** of it, 2.1 times", [("26.1", "%"), ("2.1", "times")]),
        ("3 × 296.8 MiB, then 2.1×", [("296.8", "MiB"), ("2.1", "×")]),
        ("$8{,}192$ tokens; $2P$ bytes", [("8,192", "tokens")]),
        ("−226 B and +1,024\nbytes", [("226", "B"), ("1,024", "bytes")]),
        ("70 billion weights", [("70", "billion weights")]),
        ("[81,559 MiB](https://x.org/12 GiB)", [("81,559", "MiB")]),
        ("Llama-3-8B, a 4-bit format, `12 GiB`, half a byte, chapter 12", []),
    ],
)
def test_quantities(text, found):
    assert prose_numbers.quantities(text) == found


def test_results_are_printed_with_their_unit():
    assert missing("It takes 32.6 GiB.", "32.6 GiB") == []
    assert missing("It takes 32.6 GiB.", "32.6 MiB, 132.6 GiB, 32.61 GiB")
    assert missing("It takes 1,240 bytes.", "counters  1240") == []
    assert missing("It takes 26.1 %.", "26.1%") == [] != missing("It takes 26.1 %.", "26.1")


def test_only_givens_may_stand_in_the_code():
    assert missing("It reads 4,096 tokens.", code="tokens = 4096") == []
    assert missing("It has 36 layers.", code='Model.preset("qwen3-4b")') == []
    assert missing("An 80 GB card, 80 GB.", code='limit = "80 GB"') == []
    assert missing("It takes 4,096 bytes.", code="size = 4096")
    assert missing("It has 36 layers.", code="'qwen3'")
    assert missing("It is 2.5 times that.", code="ratio = 2.5")


def test_only_an_alternative_text_may_round():
    assert missing("", "14.96 GiB", alt="A bar of 15 GiB.") == []
    assert missing("", "14.96 GiB", alt="A bar of 16 GiB.")
    assert missing("About 15 GiB.", "14.96 GiB")


def test_what_the_reader_needs_is_no_result():
    assert missing("- **You need** 20 minutes\n  and 2 GiB of memory.") == []
    assert missing("- **You get** 20 minutes\n  and 2 GiB of memory.")
