"""What chapters print in each language is kept, belongs to the chapter as it is, and is whole."""

import copy
import html
import json
import re
import shutil
from collections import Counter
from decimal import Decimal

import catalogue
import check
import guard
import lay
import outputs
import pytest
import sources
from test_translated_chapters import HIDDEN, printed

LANGUAGES = catalogue.languages()
NAME = "13_serving"
LARGE = 600_000  # bytes of one file
NO_TEXT = re.compile(HIDDEN.pattern + r"|<svg\b.*?</svg>|<[^>]*>", re.S)
TEXTS = ("text/plain", "text/html")
NAMED = re.compile(rf"({guard.NUMBER.pattern}){guard.POWER.pattern}")  # 2.82 億, 70B
MARK = re.compile(r"(?<=\d)[.,](?=\d)")


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_chapter_s_outputs_are_of_other_code(language):
    """Else the page shows the English ones: run what the message says for these chapters."""
    stale = [path.stem for path in outputs.stale(language)]
    # A chapter that was rewritten waits for its translation, and its page says so.
    assert [name for name in stale if not check.marked(language, name)] == [], outputs.STALE


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_file_is_of_a_chapter_that_is_gone_and_none_is_large(language):
    files = sorted((catalogue.folder(language) / "outputs").glob("*"))
    assert {file.stem for file in files} <= {path.stem for path in sources.chapters()}
    assert [file.name for file in files if file.stat().st_size > LARGE] == []


def whole(text):
    """A text with 28.4 million, or 2,840 萬, written out: the two share no digits."""

    def one(found):
        if (zeros := guard.POWERS.get(found[2] or found[3])) is None:  # 16 bits
            return found[0]
        return f"{Decimal(found[1].replace(',', '')).scaleb(zeros):f}"

    return NAMED.sub(one, text)


def values(cell, language):
    """The numbers that a cell prints, without the marks in them, which differ by language.

    Pictures are left out: a bar has its label where the words have room in it.
    """
    texts = printed(cell)
    for output in cell["outputs"]:
        data = output.get("data", {})
        shown = ["".join(data.get(kind, "")) for kind in TEXTS]
        texts += [html.unescape(NO_TEXT.sub(" ", text)) for text in shown]
    text = "\n".join(texts)
    return Counter(re.findall(r"\d+", MARK.sub("", whole(text) if language == "zh-TW" else text)))


@pytest.mark.parametrize("path", sources.chapters(), ids=lambda path: path.stem)
def test_a_language_shows_the_values_of_the_english_chapter(path):
    for language in LANGUAGES:
        kept = outputs.kept(language, path)
        if kept is None and check.marked(language, path.stem):
            continue  # the page shows English, and says so
        assert kept is not None, f"{language}: {outputs.STALE}"
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            if new := kept["cells"].get(cell["id"]):
                there = copy.deepcopy(cell)
                outputs.put(there, new)
                english, other = values(cell, language), values(there, language)
                lost, more = english - other, other - english
                # Chinese may say in a digit what English says in a word: "eight bits".
                assert not lost and all(len(each) == 1 for each in more), (language, cell["id"])


@pytest.fixture
def chapter(tmp_path, monkeypatch):
    """A chapter whose files a test may change, and what it was made of before."""
    (path,) = (path for path in sources.chapters() if path.stem == NAME)
    copied = tmp_path / path.name
    copied.write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    return copied, outputs.key("pt-BR", copied, ["{1} blocks"])


@pytest.mark.parametrize(
    ("change", "is_stale"),
    [
        (lambda cell: cell["source"].append("\n# a remark"), False),
        (lambda cell: cell["source"].append("\n1"), True),
        (lambda cell: cell["outputs"].clear(), True),
    ],
    ids=["a comment", "code", "an output"],
)
def test_what_a_cell_does_or_shows_makes_a_file_stale(chapter, change, is_stale):
    path, before = chapter
    content = json.loads(path.read_text(encoding="utf-8"))
    change(next(c for c in content["cells"] if c.get("outputs")))
    path.write_text(json.dumps(content), encoding="utf-8")
    assert (outputs.key("pt-BR", path, ["{1} blocks"]) != before) is is_stale


def test_other_code_of_a_picture_makes_a_file_stale_and_a_remark_does_not(
    chapter, monkeypatch, tmp_path
):
    path, before = chapter
    plot = shutil.copytree(outputs.PLOT, tmp_path / "plot")
    monkeypatch.setattr(outputs, "PLOT", plot)
    for name, more, is_stale in (
        ("canvas.py", "\n# a remark\n", False),
        ("who_holds.py", "\nMORE = 1\n", False),  # no picture of this chapter
        ("canvas.py", "\nMORE = 1\n", True),
    ):
        with (plot / name).open("a", encoding="utf-8") as file:
            file.write(more)
        outputs.drawn_by.cache_clear()
        assert (outputs.key("pt-BR", path, ["{1} blocks"]) != before) is is_stale
    outputs.drawn_by.cache_clear()


def test_another_word_of_the_language_makes_a_file_stale(chapter, monkeypatch):
    path, before = chapter
    words = dict(outputs.messages_of("pt-BR"))
    monkeypatch.setattr(outputs, "messages_of", lambda language: words)
    assert outputs.key("pt-BR", path, ["{1} blocks"]) == before
    words["no chapter says this"] = "nenhum"
    assert outputs.key("pt-BR", path, ["{1} blocks"]) == before
    words["{1} blocks"] = "{1} pedaços"
    assert outputs.key("pt-BR", path, ["{1} blocks"]) != before


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_message_with_a_number_written_in_it_is_known_by_its_own_name(language, monkeypatch):
    """A pattern of a print of chapter 16, whose own numbers are no places."""
    words = dict(outputs.messages_of(language))
    monkeypatch.setattr(outputs, "messages_of", lambda language: words)
    for chapter, number in (("16_mixed_precision", "4,096 tokens under"),):
        path = sources.ROOT / "notebooks" / f"{chapter}.ipynb"
        said = sources.said(json.loads(path.read_text(encoding="utf-8")))
        (message,) = (text for text in said if number in text and "{1}" in text)
        assert outputs.kept(language, path) is not None
        words[message] += "."
        assert outputs.kept(language, path) is None


def test_a_stale_chapter_stays_english_and_its_page_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(outputs, "key", lambda *given: "of other code")
    path = lay.notebooks("pt-BR", tmp_path, [NAME]) / f"{NAME}.ipynb"
    there = json.loads((sources.ROOT / "notebooks" / path.name).read_text(encoding="utf-8"))
    here = json.loads(path.read_text(encoding="utf-8"))
    for one, other in zip(there["cells"], here["cells"], strict=True):
        assert one.get("outputs") == other.get("outputs")
    left = catalogue.translations("pt-BR", sources.SITE)[sources.LEFT]
    assert left in "".join(here["cells"][0]["source"])
    assert f"{check.LEFT[1]}: {outputs.STALE} {NAME}" in check.problems("pt-BR", NAME)
    assert check.problems("pt-BR", "intro") == []
