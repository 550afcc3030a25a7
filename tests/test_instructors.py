"""The instructor's pages say what their chapters print, and the check sees when they do not."""

import re
from pathlib import Path

import instructors
import nbformat
import pytest

ROOT = Path(__file__).resolve().parent.parent
SECTIONS = {
    stem: (number, title, text)
    for page in instructors.pages(ROOT)
    for number, title, stem, text in instructors.sections(page)
}


def test_every_chapter_has_its_section_and_nothing_is_amiss():
    assert list(instructors.problems(ROOT)) == []
    assert len(SECTIONS) == len(list(ROOT.glob("notebooks/[0-9]*.ipynb"))) + 1


def found(stem, old, new, heading=None):
    """What is amiss with a section in which something stands otherwise."""
    number, title, text = SECTIONS[stem]
    assert re.search(old, text, re.DOTALL)
    nb = nbformat.read(ROOT / "notebooks" / f"{stem}.ipynb", as_version=4)
    changed = re.sub(old, new, text, flags=re.DOTALL)
    return "\n".join(instructors.amiss(number, heading or title, stem, changed, nb))


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        (r"31\.11 GiB", "31.12 GiB", "no cell of the page prints '31.12 GiB'"),
        ("`formula-shrink`", "`formula-shrunk`", "`formula-shrunk` stands nowhere"),
        (r"\*\*Type\.", "**Write.", "its entries are Goal, Misconception, Ask, Write"),
        (r"3\. \*Why([^*]+)\*", r"3. Why\1", "2 questions, not three"),
        (r"\*\*Goal\.\*\* ", "**Goal.** Yes. ", "its goal is not one sentence"),
        ("`(sketch|tops)`", r"\1", "fewer than two pieces of the machine"),
        (r"(\*\*Without machines\.\*\*).*", r"\1 Paper. " + "One more slip. " * 80, "words, not"),
        (r"(\*\*Type\.\*\*).*", r"\1 `sketch`.\n\n**Without machines.** Paper.", "words, not 150"),
    ],
)
def test_a_slip_is_found(old, new, line):
    assert line in found("07_step", old, new)


def test_a_wrong_heading_is_found():
    assert "its heading is 7 Steps" in found("07_step", "", "", heading="Steps")


def test_a_chapter_without_a_section_is_found(tmp_path):
    (tmp_path / "notebooks").symlink_to(ROOT / "notebooks")
    (tmp_path / "book").mkdir()
    for path in ROOT.glob("book/instructor-*.md"):
        text = path.read_text(encoding="utf-8").replace("05_activations.ipynb", "06_logits.ipynb")
        (tmp_path / "book" / path.name).write_text(text, encoding="utf-8")
    assert "the sections are those of" in "\n".join(instructors.problems(tmp_path))
