"""Translations: blocks come out and go back, guards catch what breaks, catalogues move little."""

import ast
import csv
import importlib.util
import json
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

import blocks
import catalogue
import check
import glossary
import guard
import interface
import lay
import outputs
import places
import pytest
import sources
import stage
import yaml

import book
from memlab.base import messages

ROOT = Path(__file__).parent.parent


PAGES = sorted((ROOT / "book").glob("*.md"))
NOTEBOOKS = sorted((ROOT / "notebooks").glob("[0-9]*.ipynb"))
PAGE = """(label)=
# A *title*

One paragraph
on two lines with $x$ and `code`.

| term | bytes |
|---|---:|
| all of it | `weights` |
| 15 GiB | $P$ |

- an item
  that goes on
- `only code`

> said by somebody

$$
x = y
$$

::: {figure} a.svg
:name: fig-a
:alt: What it shows

A caption.
:::

```python
not = "words"
```
"""
BLOCKS = [
    "A *title*",
    "One paragraph on two lines with $x$ and `code`.",
    "term",
    "bytes",
    "all of it",
    "an item that goes on",
    "said by somebody",
    "What it shows",
    "A caption.",
]


def text_of(path):
    if path.suffix == ".md":
        return [path.read_text(encoding="utf-8")]
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return ["".join(c["source"]) for c in cells if c["cell_type"] == "markdown"]


@pytest.fixture
def locale(tmp_path, monkeypatch):
    monkeypatch.setattr(catalogue, "LOCALE", tmp_path)
    monkeypatch.setattr(check, "TERMS", tmp_path / "terms.csv")
    monkeypatch.setattr(check, "PACKAGE", tmp_path / "package")
    for cached in (check.terms, check._patterns, stage._of):
        cached.cache_clear()
    yield tmp_path
    for cached in (check.terms, check._patterns, stage._of):
        cached.cache_clear()


def test_the_blocks_of_a_page_are_what_a_reader_reads():
    assert blocks.blocks(PAGE) == BLOCKS


def test_a_page_keeps_all_but_its_words():
    said = blocks.translate(PAGE, lambda block: block.upper().replace("$X$", "$x$"))
    for kept in ("(label)=", "$$\nx = y\n$$", ":name: fig-a", 'not = "words"', "| 15 GiB | $P$ |"):
        assert kept in said
    for new in ("# A *TITLE*", "| ALL OF IT | `weights` |", "- AN ITEM THAT GOES ON", "> SAID BY"):
        assert new in said


@pytest.mark.parametrize("path", PAGES + NOTEBOOKS, ids=lambda path: path.stem)
def test_every_page_comes_back_as_it_was(path):
    for text in text_of(path):
        assert blocks.translate(text, lambda block: None) == text
        again = blocks.translate(text, lambda block: block)
        assert guard.shape(again) == guard.shape(text)
        assert blocks.blocks(again) == blocks.blocks(text)


def test_the_parser_is_the_book_s():
    config = yaml.safe_load((ROOT / "_config.yml").read_text())
    assert sorted(blocks.EXTENSIONS) == sorted(config["parse"]["myst_enable_extensions"])


@pytest.mark.parametrize(
    ("translated", "problem"),
    [
        ("**Some** 3.5 GiB de `x`, [aqui](#y).", None),
        ("**Some** 3,5 GiB de `x`, [aqui](#y).", "figures: missing 3.5"),
        ("**Some** 3.6 GiB de `x`, [aqui](#y).", "figures: missing 3.5"),
        ("Some 3.5 GiB de `x`, [aqui](#y).", "marks: missing strong"),
        ("**Some** 3.5 GiB de x, [aqui](#y).", "kept as it is: missing `x`"),
        ("**Some** 3.5 GiB de `x`, [aqui](#z).", "kept as it is: missing ](#y)"),
        ("- **Some** 3.5 GiB de `x`, [aqui](#y).", "it is read as another kind of block"),
    ],
)
def test_a_translation_keeps_what_is_no_word(translated, problem):
    found = guard.problems("**Add** 3.5 GiB of `x`, [here](#y).", translated)
    assert not found if problem is None else problem in " ".join(found)


def test_a_bold_that_fails_beside_an_ideograph_is_found():
    assert guard.problems("Use **bold.** Now", "使用**粗體。**現在")
    assert not guard.problems("Use **bold.** Now", "使用**粗體**。現在")
    # One that fails and one more than there was: their number is right.
    assert guard.problems("*One?* Two *three*.", "*一？*二，*三*四*五*。")


def test_a_figure_is_compared_by_its_value_and_a_month_by_its_name():
    assert not guard.problems("FP8 36.50 and 8,192 tokens", "FP8, 36.5 e 8192 tokens")
    # A catalogue keeps the English form, which the page turns; 8.192 would be eight.
    assert guard.problems("8,192 tokens", "8.192 tokens")
    assert not guard.problems("197 million of 70B", "1.97 億 of 70 bilhões")
    assert guard.problems("197 million", "19.7 億") and guard.problems("4 B", "4B")
    assert guard.problems("FP8 36.53", "FP8 36.35")
    assert not guard.problems("since 2 August 2026", "2026 年 8 月 2 日起")
    assert guard.problems("since 2 August 2026", "2026 年 8 月 3 日起")
    assert guard.problems("since 2026", "2026 年 8 月起")


def test_a_catalogue_holds_still_and_marks_what_changed(locale):
    first = ["Count the weights.", "Then the gradients of all layers."]
    assert catalogue.update("pt-BR", "page", first)
    text = catalogue.path_of("pt-BR", "page").read_text()
    assert "Date" not in text and "Generated" not in text and "#:" not in text
    assert catalogue.fill("pt-BR", "page", {first[0]: "Conte os pesos.", "No": "Não"}) == ["No"]
    assert catalogue.fill("pt-BR", "page", {first[1]: "Depois, os gradientes."}) == []
    assert not catalogue.update("pt-BR", "page", first)
    changed = [first[0], "Then the gradients of all the layers."]
    assert catalogue.update("pt-BR", "page", changed)
    assert catalogue.translations("pt-BR", "page") == {first[0]: "Conte os pesos."}
    was = '#, fuzzy\n#| msgid "Then the gradients of all layers."\nmsgid'
    assert was in catalogue.path_of("pt-BR", "page").read_text()
    assert not catalogue.update("pt-BR", "page", changed)
    catalogue.fill("pt-BR", "page", {changed[1]: "E os gradientes."})
    assert "fuzzy" not in catalogue.path_of("pt-BR", "page").read_text()


def test_a_block_that_moves_to_another_page_brings_its_translation(locale):
    catalogue.update("pt-BR", "one", ["Count the weights.", "Stays."])
    catalogue.fill("pt-BR", "one", {"Count the weights.": "Conte os pesos."})
    moved = catalogue.compendium("pt-BR", ["one", "two"])
    catalogue.update("pt-BR", "one", ["Stays."], moved=moved)
    catalogue.update("pt-BR", "two", ["Count the weights."], moved=moved)
    assert catalogue.translations("pt-BR", "two") == {"Count the weights.": "Conte os pesos."}


def test_an_entry_has_its_place_and_what_an_editor_wrote_above_all_stays(locale):
    there = {
        "kept": (["a.ipynb#x"] * 2 + ["b.ipynb#y"], "head of column 2 of the table rank | kept")
    }
    catalogue.update("pt-BR", "page", ["kept", "{1} of {2}"], there)
    path = catalogue.path_of("pt-BR", "page")
    text = path.read_text()
    assert "#. head of column 2 of the table rank | kept\n#: a.ipynb#x b.ipynb#y\nmsgid" in text
    assert '#, python-brace-format\nmsgid "{1} of {2}"' in text
    path.write_text(text.replace('"Language: pt_BR', '"Last-Translator: Ana\\n"\n"Language: pt_BR'))
    edited = path.read_text()
    assert "Ana" in edited
    catalogue.update("pt-BR", "page", ["kept", "{1} of {2}"], there)
    assert "Ana" in path.read_text()


@pytest.mark.skipif(shutil.which("msgcat") is None, reason="no gettext")
@pytest.mark.parametrize("language", catalogue.languages())
def test_an_editor_that_saves_changes_nothing_else(language, tmp_path):
    for path in sorted(catalogue.folder(language).glob("*.po")):
        saved = tmp_path / path.name
        subprocess.run(["msgcat", "--no-wrap", path, "-o", saved], check=True)
        assert saved.read_bytes() == path.read_bytes(), path.name


def test_every_word_with_two_senses_is_met_in_its_table():
    found = {(table, text) for text, all in places.outputs().items() for table, *_ in all}
    assert [sense for sense in sources.SENSES if sense not in found] == []


# Put together where a program runs: a moment, and code that says where to look.
ASSEMBLED = {"in memory", "print(type(schedule)): ScheduleGPipe?"}


def test_every_label_of_the_book_has_its_place():
    """But for what no chapter prints: answers that a reader may get."""
    there = sources.blocks_of(sources.MESSAGES)
    told, short = places.places(sources.MESSAGES, there), [x for x in there if len(x.split()) <= 2]
    assert len(short) > 500
    assert {x for x in short if x not in told} == ASSEMBLED


def test_a_word_with_two_senses_has_a_word_for_one_table(locale):
    blocks_there = ["rank", "stage\x04rank"]
    catalogue.update("pt-BR", "page", blocks_there)
    words = {"rank": "posto", "stage\x04rank": "rank"}
    assert catalogue.fill("pt-BR", "page", words) == []
    assert 'msgctxt "stage"\nmsgid "rank"' in catalogue.path_of("pt-BR", "page").read_text()
    assert not catalogue.update("pt-BR", "page", blocks_there)
    assert catalogue.translations("pt-BR", "page") == words


@pytest.fixture
def commands(monkeypatch, locale):
    """`python tools/i18n`, for a book of two pages."""
    path = ROOT / "tools" / "i18n" / "__main__.py"
    spec = importlib.util.spec_from_file_location("i18n_commands", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    book = {"one": ["Count the weights."], "two": ["Then the gradients.", "Then 16 more bytes."]}
    monkeypatch.setattr(sources, "names", lambda: list(book))
    monkeypatch.setattr(sources, "blocks_of", book.__getitem__)
    monkeypatch.setattr(check, "compile_messages", lambda languages: None)
    for page, blocks_there in book.items():
        catalogue.update("pt-BR", page, blocks_there)
    return module.main


def test_one_file_holds_what_is_left_of_the_whole_book(commands, capsys, tmp_path):
    def left():
        assert commands(["todo", "pt-BR"]) == 0
        return json.loads(capsys.readouterr().out)

    words = left()
    assert words == {
        "one": {"Count the weights.": ""},
        "two": {"Then the gradients.": "", "Then 16 more bytes.": ""},
    }
    file = tmp_path / "left.json"
    words["one"]["Count the weights."] = "Conte os pesos."
    words["two"]["Then 16 more bytes."] = "Depois, mais 61 bytes."
    file.write_text(json.dumps(words))
    assert commands(["fill", "pt-BR", str(file)]) == 1
    said = capsys.readouterr().out
    assert said.startswith("two: 'Then 16 more bytes.'") and "nothing was written" in said
    assert len(left()) == 2  # not the sound one either
    words["two"]["Then 16 more bytes."] = "Depois, mais 16 bytes."
    file.write_text(json.dumps(words))
    assert commands(["fill", "pt-BR", str(file)]) == 0
    assert left() == {"two": {"Then the gradients.": ""}}
    assert commands(["todo", "pt-BR", "two"]) == 0
    assert json.loads(capsys.readouterr().out) == {"Then the gradients.": ""}
    file.write_text(json.dumps({"three": {}}))
    assert commands(["fill", "pt-BR", str(file)]) == 1
    assert "no page 'three'; known: one, two" in capsys.readouterr().out


def test_the_package_says_what_the_catalogues_say():
    assert check.uncompiled() == [], "run python tools/i18n update"


def test_a_word_that_is_not_in_the_package_yet_is_found(locale, monkeypatch):
    monkeypatch.setattr(sources, "MESSAGES", "page")
    monkeypatch.setattr(messages, "FOLDER", check.PACKAGE)
    catalogue.update("pt-BR", "page", ["weights"])
    catalogue.fill("pt-BR", "page", {"weights": "pesos"})
    assert check.uncompiled() == ["pt-BR"]
    check.compile_messages(["pt-BR"])
    assert check.uncompiled() == []
    (check.PACKAGE / "fr.json").write_text("{}")  # of a language without catalogues
    assert check.uncompiled() == ["fr"]
    catalogue.fill("pt-BR", "page", {"weights": "os pesos"})
    check.compile_messages(["pt-BR", "fr"])
    assert check.uncompiled() == [] and messages.languages() == ["en", "pt-BR"]


def test_a_broken_catalogue_is_named(locale):
    catalogue.path_of("pt-BR", "page").parent.mkdir()
    catalogue.path_of("pt-BR", "page").write_text('<<<<<<< HEAD\nmsgid "a"\n')
    with pytest.raises(ValueError, match="page.po of pt-BR is no catalogue"):
        catalogue.read("pt-BR", "page")


def test_terms_are_translated_one_way(locale):
    rows = [
        ["en", "pt_BR", "zh_TW", "fixed", "never_pt_BR", "never_zh_TW"],
        [
            "optimizer state",
            "estado do otimizador|estados do otimizador",
            "最佳化器狀態",
            "yes",
            "",
            "",
        ],
        ["memory", "memória", "記憶體", "yes", "", "內存"],
    ]
    with check.TERMS.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)
    assert not check.entry("pt-BR", "Optimizer states", "Estados do otimizador")
    assert check.entry("pt-BR", "Optimizer state", "Estado do optimizador")
    assert not check.entry("zh-TW", "the memory", "記憶體")
    assert len(check.entry("zh-TW", "the memory", "內存")) == 2
    assert check.entry("zh-TW", "the memory", "记忆體的記憶體") == ["not written in Taiwan: 忆 记"]


def test_the_terms_are_whole_and_each_stands_once():
    rows = glossary.rows(ROOT)
    assert len(rows) >= 120 and len({row["en"] for row in rows}) == len(rows)
    for row in rows:
        assert row["pt_BR"] and row["zh_TW"] and row["definition"][-1:] in ("", "."), row["en"]
        assert not check.simplified(row["zh_TW"]), row["en"]
        assert row["fixed"] in ("yes", "no"), row["en"]


def test_the_glossary_is_of_words_of_the_field():
    """Everybody knows what a file is; what `foreach` does to a peak is what a reader looks up."""
    explained = {row["en"] for row in glossary.rows(ROOT) if row["definition"]}
    assert 60 <= len(explained) <= 75
    assert explained >= {"allocated", "reserved", "foreach", "page table", "ZeRO", "NF4", "VRAM"}
    assert not explained & {
        "bit",
        "byte",
        "file",
        "draft",
        "memory",
        "program",
        "process",
        "thread",
    }


def test_the_glossary_says_each_term_in_its_language():
    text = sources.status.fill("<!-- glossary -->", ROOT)
    done = stage.page(text, stage.words_of("zh-TW", "glossary"))
    assert "\n峰值 (peak)\n: " in done and "\nautograd\n: " in done


def test_a_notebook_is_staged_with_its_code_as_it_was():
    html, svg = {"text/html": "<td>1,024</td>"}, {"image/svg+xml": "<text>One</text>"}
    content = {
        "metadata": {"memlab": {"said": ["One"]}},
        "cells": [
            {
                "cell_type": "markdown",
                "id": "words",
                "metadata": {},
                "source": ["# One\n", "\n", "Two\n", "lines"],
            },
            {
                "cell_type": "code",
                "id": "code",
                "source": ["print('weights')"],
                "metadata": {"mystnb": {"image": {"alt": "One"}}},
                "outputs": [
                    {"output_type": "stream", "name": "stdout", "text": ["weights\n"]},
                    {"output_type": "display_data", "data": html},
                    {"output_type": "display_data", "data": svg},
                ],
            },
        ],
    }
    missing = []
    new = {"code": ["pesos\n", None, {"image/svg+xml": "<text>Um</text>"}]}
    done = stage.notebook(content, {"One": "Um"}, "pt-BR", missing, new)
    text, code = done["cells"]
    assert text["source"] == "# Um\n\nTwo\nlines" and missing == ["Two lines"]
    assert code["source"] == content["cells"][1]["source"]
    assert code["metadata"]["mystnb"]["image"]["alt"] == "Um"
    printed, table, drawing = code["outputs"]
    assert printed == {"output_type": "stream", "name": "stdout", "text": "pesos\n"}
    assert table["data"] == html and drawing["data"] == {"image/svg+xml": "<text>Um</text>"}
    assert done["metadata"]["memlab"] == {"language": "pt-BR"}
    assert content["cells"][1]["outputs"][0]["text"] == ["weights\n"]


def test_a_page_has_its_numbers_as_its_language_writes_them():
    text = (
        "# One of 8,192\n\n15.5 GiB\n\n| 1,024 | `1,024` |\n|---|---|\n| 8.318 GiB | two |\n\n"
        "$V = 8{,}030.5$ is `$x = 1.5$`\n\n$$\n1.5 \\, x_{1,2}\n$$\n\n```\n1.5\n```\n"
    )
    words = {"One of 8,192": "Um de 8,192"}
    done = stage.page(text, words, language="pt-BR")
    for line in ("# Um de 8.192", "15,5 GiB", "| 1.024 | `1,024` |", "| 8,318 GiB | two |"):
        assert line in done.splitlines()
    assert "$V = 8.030{,}5$ is `$x = 1.5$`" in done and "\n1{,}5 \\, x_{1,2}\n" in done
    assert "```\n1.5\n```" in done
    assert stage.page(text, words, language="zh-TW") == text.replace("One of", "Um de")


def test_a_drawing_says_its_words_and_keeps_its_rules():
    svg = "<style>a { b: c }</style>\n<text>1,024 &amp; more</text> <g>\n</g>"
    assert stage.markup(svg, lambda text: text.replace(",", ".").replace("more", "<mais>")) == (
        "<style>a { b: c }</style>\n<text>1.024 &amp; &lt;mais&gt;</text> <g>\n</g>"
    )


def test_a_page_says_the_titles_of_its_chapters_in_its_language():
    titles = {short: f"Ç {short}" for short in sources.titles()}
    missing = []
    text = sources.status.fill("<!-- chapters -->", ROOT)
    done = stage.page(text, titles, missing)
    assert not any("notebooks/" in block for block in missing)
    assert done.count("Ç ") == len(NOTEBOOKS)


def test_what_surrounds_a_page_is_said_in_its_language():
    words = {"Main": "Principal", "About {1} minutes": "Cerca de {1} minutos", "Dark": "Escuro"}
    page = (
        '<a title="Main">Main</a> <p data-said="About {1} minutes" data-number="15">'
        "About 15 minutes</p><pre><b>Main</b></pre><i>Mainly</i>"
    )
    assert interface.translate(page, words) == (
        '<a title="Principal">Principal</a> <p data-said="About {1} minutes" data-number="15">'
        "Cerca de 15 minutos</p><pre><b>Main</b></pre><i>Mainly</i>"
    )
    hostile = {"Main": '"><script>'}
    assert "<script>" not in interface.translate(page, hostile)


def test_a_laid_out_notebook_that_was_changed_stays(locale, tmp_path):
    folder = lay.notebooks("pt-BR", tmp_path / "lab")
    first, second = sorted(folder.glob("*.ipynb"))[:2]
    was = second.read_text(encoding="utf-8")
    for path in (first, second):
        path.write_text("mine")
    second.unlink()
    lay.notebooks("pt-BR", folder)
    assert first.read_text() == "mine" and second.read_text(encoding="utf-8") == was


def test_staged_notebooks_have_the_code_of_the_english_ones(tmp_path):
    for language in catalogue.languages():
        folder = lay.notebooks(language, tmp_path / language)
        for path in NOTEBOOKS:
            here, there = (json.loads(p.read_text("utf-8")) for p in (path, folder / path.name))
            assert there["metadata"]["memlab"] == {"language": language}
            for one, other in zip(here["cells"], there["cells"], strict=True):
                assert (one["id"], one["cell_type"]) == (other["id"], other["cell_type"])
                if one["cell_type"] == "code":
                    assert one["source"] == other["source"]


@pytest.mark.parametrize("name", sources.names())
def test_what_is_translated_is_sound_and_belongs_to_the_page_as_it_is(name):
    for language in catalogue.languages():
        found = check.problems(language, name)
        assert not [line for line in found if not line.startswith(check.LEFT)], language


SPACED = re.compile(r"\d\*{0,2} %(?!\w)")


@pytest.mark.parametrize("name", sources.names())
def test_a_percentage_has_no_space_in_any_language(name):
    """As everything prints it: 6.9%."""
    texts = {"en": sources.blocks_of(name)}
    texts |= {x: catalogue.translations(x, name).values() for x in catalogue.languages()}
    for language, blocks_there in texts.items():
        said = [blocks.SILENT.sub("", text) for text in blocks_there]
        assert [text for text in said if SPACED.search(text)] == [], language


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_cell_prints_a_percentage_with_a_space(path):
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        for output in cell.get("outputs", []):
            shown = outputs.shown(output)
            texts = [shown] if isinstance(shown, str) else shown.values()
            for text in texts:  # a quotation has its author's form
                assert not SPACED.search(re.sub(r"<q\b.*?</q>", "", text, flags=re.S)), cell["id"]


CODE_FONT = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")


@cache
def labels():
    """Chapter -> the labels of its outputs, each with the languages that say another word."""
    others = {}
    for language in catalogue.languages():
        for block, said in catalogue.translations(language, "memlab").items():
            if (words := block.split(messages.CONTEXT)[-1]) not in said:
                others.setdefault(words, set()).add(language)
    found = {}
    for words, stands in places.outputs().items():
        for _, place, _ in stands if words in others else ():
            chapter = found.setdefault(place.rpartition("/")[2].partition(".")[0], {})
            chapter[words] = others[words]
    return found


@pytest.mark.parametrize("path", sources.chapters(), ids=lambda path: path.stem)
def test_a_label_stands_in_code_font_only_where_it_is_a_name_of_the_code(path):
    """A label is translated and what is in code font is not: a reader would look for another."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    source = {kind: [] for kind in ("code", "markdown", "raw")}
    for cell in cells:
        source[cell["cell_type"]].append("".join(cell["source"]))
    names = set()
    for code in source["code"]:
        for node in ast.walk(ast.parse(re.sub(r"(?m)^[%!].*$", "", code))):
            names |= {getattr(node, each, None) for each in ("id", "attr", "arg", "name")}
    called = set(CODE_FONT.findall("\n".join(source["markdown"]))) - names
    assert not {
        word: others for word, others in labels().get(path.stem, {}).items() if word in called
    }


# Who may name several languages in one line: the list of them, and what is said in each.
NAMED_TOGETHER = {
    "tools/book.py": "the list, with their own names",
    "src/memlab/files/claims_html.py": "in which the field notes are written",
    "tests/test_i18n.py": "a sample of terms.csv",
    "tests/test_search.py": "questions in each, with what they find",
    "tests/test_languages.py": "languages of readers, near ones too",
}


def test_languages_are_listed_in_one_place():
    """Who adds one writes its catalogues and that line; all else follows."""
    others = [code for code in book.LANGUAGES if code != book.ENGLISH]
    named = [re.compile(code.replace("-", "[-_]")) for code in others]
    found = set()
    for folder in ("src", "tools", "tests"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".py", ".mjs", ".js", ".sh", ".toml") and path.is_file():
                lines = path.read_text(encoding="utf-8").splitlines()
                if any(sum(bool(one.search(line)) for one in named) > 1 for line in lines):
                    found.add(str(path.relative_to(ROOT)))
    assert found == set(NAMED_TOGETHER)
    assert sorted(others) == messages.languages()[1:]
