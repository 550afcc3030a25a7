"""The project's own list of words: no page that was rid of them has one, and the check can fail."""

import json
from pathlib import Path

import words

ROOT = Path(__file__).resolve().parent.parent


def test_no_page_has_a_word_of_the_list(capsys):
    assert words.main() == 0, capsys.readouterr().out


def test_thirteen_chapters_and_the_pages_around_are_read():
    names = [path.name for path in words.pages()]
    assert len(names) >= 16 and {"01_formats.ipynb", "13_serving.ipynb", "intro.md"} <= {*names}


def test_a_word_is_found_in_prose_and_captions_and_not_in_code(tmp_path):
    caption = {"mystnb": {"figure": {"caption": "Four hills of a step."}}}
    cells = [
        {"cell_type": "markdown", "metadata": {}, "source": ["*Read it aloud.* `hills(step)`\n"]},
        {"cell_type": "code", "metadata": caption, "source": ["hills(step)"]},
    ]
    path = tmp_path / "page.ipynb"
    path.write_text(json.dumps({"cells": cells}), encoding="utf-8")
    lines = list(words.found(words.prose(path)))
    assert len(lines) == 2 and "the peak of a phase" in lines[1]


def test_no_chapter_tells_its_reader_to_read_aloud():
    for path in (ROOT / "notebooks").glob("*.ipynb"):
        assert "ead it aloud" not in words.prose(path), path.name
