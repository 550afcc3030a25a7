"""What memlab prints follows the reader's language, and nothing else does."""

import json
from pathlib import Path

import pytest

from memlab.base import messages
from memlab.base.grid import Grid
from memlab.base.message import Listed, Message, is_message, is_sentence
from memlab.base.table import as_html, as_text, places
from memlab.plot.canvas import Canvas, heading, wrap

WORDS = {
    "weights": "pesos",
    "peak after {1} layers of {2}": "em {2}: pico após {1} camadas",
    "the whole step": "整個訓練步驟",
}
TABLE = [["term", "derived"], ["weights", "1,024"], ["master copy", "12"]]


@pytest.fixture
def portuguese(tmp_path, monkeypatch):
    (tmp_path / "pt-BR.json").write_text(json.dumps(WORDS), encoding="utf-8")
    monkeypatch.setattr(messages, "FOLDER", tmp_path)
    monkeypatch.setattr(messages, "_chosen", [])
    messages.catalogue.cache_clear()
    messages.use_language("pt-BR")
    yield
    messages.catalogue.cache_clear()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("weights", "pesos"),
        ("peak after 3 layers of 1.5 GiB", "peak after 3 layers of 1,5 GiB"),
        (Message("peak after {1} layers of {2}", 3, "1.5 GiB"), "em 1,5 GiB: pico após 3 camadas"),
        (Message("not in it: {1}", "1.5 GiB"), "not in it: 1.5 GiB"),
        (Listed(" · ", ["weights", "AdamW"]), "pesos · AdamW"),
        ("weights · AdamW", "weights · AdamW"),
        (Message("peak after {1} layers of {2}", 3, "weights"), "em pesos: pico após 3 camadas"),
        (Message("{1}: {2}", "weights", Message("{1} {2}", "x", "1,024 B")), "pesos: x 1.024 B"),
        (Message("not in it: {1}", "weights"), "not in it: weights"),
        ("master copy", "master copy"),
        ("1,024 B", "1.024 B"),
        ("", ""),
    ],
)
def test_a_text_is_said_whole_and_a_message_in_parts(portuguese, text, said):
    assert messages.say(text) == said
    assert messages.say(messages.say(text)) == said


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("peak after {1} layers", True),
        ("transformers", True),
        ("1,024 B / 3.5 GiB", False),
        ("{1} MiB", False),
        ("RTX 4090 · bf16", False),
        ("MHA · K = {1}", False),
        ("MHA, K = {1}", True),
        ("{1}, {2}", False),
        ("an RTX 4090", True),
        ("", False),
    ],
)
def test_a_sentence_has_a_word_that_is_no_name(text, is_one):
    assert is_sentence(text) is is_one


def test_a_mark_between_two_values_is_a_matter_of_the_language():
    assert is_message("{1}, {2}") and is_message("weights")
    assert not is_message("{1} · {2}") and not is_message("1,024 B (1 KiB)")


def test_what_is_said_already_is_not_said_again(portuguese):
    inner = messages.told("{1} B", "1,024")
    assert inner == "1.024 B"
    assert (
        messages.told("peak after {1} layers of {2}", 3, inner) == "em 1.024 B: pico após 3 camadas"
    )


def test_a_number_is_read_with_what_stands_around_its_place(portuguese):
    assert messages.told("{1} {2}", "PyTorch", "2.13") == "PyTorch 2.13"
    assert messages.told("{1} {2}", "2.13", "GiB") == "2,13 GiB"


def test_the_package_has_the_words_of_the_books_languages():
    kept = Path(__file__).parent.parent / "book" / "locale"
    folders = sorted(folder.name for folder in kept.iterdir() if folder.is_dir())
    assert messages.languages() == ["en", *(name.replace("_", "-") for name in folders)]
    assert messages.catalogue("pt-BR")["weights"] == "pesos"


def test_english_is_said_as_it_is():
    assert messages.language() == "en"
    assert messages.say("weights") is not None and messages.say("weights") == "weights"


def test_tables_and_pictures_ask(portuguese):
    lines = as_text(TABLE, title="weights").splitlines()
    assert lines[0] == "pesos" and lines[2].split() == ["pesos", "1.024"]
    assert ">pesos</th>" in as_html(TABLE)
    sheet = Canvas()
    heading(sheet, Message("peak after {1} layers of {2}", 3, "2 B"))
    assert ">em 2 B: pico após 3 camadas</text>" in sheet.parts[0]


def test_ideographs_take_two_places_and_part_anywhere(portuguese):
    assert places("步驟 a") == 6
    table = [["the whole step", "n"], ["x", "1"]]
    first, second = as_text(table).splitlines()
    assert places(first) == places(second)
    lines = wrap("the whole step", 40)
    assert "".join(lines) == "整個訓練步驟" and len(lines) > 1


def test_a_table_has_its_own_word_for_a_word_with_two_senses(portuguese):
    messages.catalogue("pt-BR")["stage\x04term"] = "prazo"
    assert messages.say("term", "stage") == "prazo" and messages.say("term") == "term"
    rows = [["stage", "term"], ["1", "2"]]
    assert "prazo" in as_text(rows) and ">prazo<" in as_html(rows)


def test_the_language_comes_from_the_environment_or_from_the_notebook(tmp_path, monkeypatch):
    (tmp_path / "pt-BR.json").write_text("{}")
    monkeypatch.setattr(messages, "FOLDER", tmp_path)
    notebook = tmp_path / "a.ipynb"
    notebook.write_text(json.dumps({"metadata": {"memlab": {"language": "pt-BR"}}}))
    for variable, value in (("MEMLAB_LANG", "pt-BR"), ("JPY_SESSION_NAME", str(notebook))):
        with monkeypatch.context() as one:
            one.setattr(messages, "_chosen", [])
            one.setenv(variable, value)
            assert messages.language() == "pt-BR"
    for broken in ("{", "[]", '{"metadata": 1}'):
        notebook.write_text(broken)
        monkeypatch.setattr(messages, "_chosen", [])
        monkeypatch.setenv("JPY_SESSION_NAME", str(notebook))
        assert messages.language() == "en"


def test_an_unknown_language_is_refused_with_those_there_are():
    with pytest.raises(ValueError, match="no language 'fr'; known: en"):
        messages.use_language("fr")


def test_what_is_asked_for_is_heard(tmp_path, monkeypatch):
    file = tmp_path / "heard"
    messages.say("before")
    monkeypatch.setattr(messages, "HEARD", str(file))
    monkeypatch.setattr(messages, "_heard", set())
    for text in ("after", "after", "größer", Message("{1} of {2}", "after", Listed(", ", ["x"]))):
        messages.say(text)
    heard = list(map(json.loads, file.read_text().splitlines()))
    assert heard == ["after", "größer", "{1} of {2}", "x"]


def test_a_grid_is_a_table_as_a_value():
    cells = [["model", "bytes"], ["one", "1,024"], ["<all>", "2,048"]]
    grid = Grid(cells, title="Sizes", foot=1)
    assert repr(grid) == str(grid) == as_text(cells, foot=1, title="Sizes")
    assert grid._repr_html_() == as_html(cells, foot=1, title="Sizes")
    assert "&lt;all&gt;" in grid._repr_html_() and grid == Grid(cells, "Sizes", 1)
    with pytest.raises(ValueError, match="has 1 cells; 2 headings"):
        Grid([["model", "bytes"], ["one"]])
