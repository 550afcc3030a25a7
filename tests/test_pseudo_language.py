"""A language in which every translated letter is marked: what stays plain has escaped translation.

The whole book is built in it, as in a fourth language; Esperanto lends its code, since Sphinx has
to know one. Two pages are left out: the glossary, whose terms stand in terms.csv, and the
references, which keep titles.
"""

import html
import importlib.util
import json
import re
from contextlib import nullcontext
from pathlib import Path

import catalogue
import check
import lay
import outputs
import pytest
import sources
import stage
from blocks import SILENT

from memlab.model.presets import PRESETS

ROOT = Path(__file__).resolve().parent.parent


PSEUDO = "eo"
KEPT = re.compile(  # a power of ten with a name is part of a number
    SILENT.pattern + r"|\{\w+\}|^\d+\. |`[^`]*`|\{\w+\}`[^`]*`|\b(?:m|b|tr)illion\b"
)
MARKED = str.maketrans("aeiou", "áéíóú")

OWN = ("glossary.html", "references.html")
# What no language changes: code, formulas, pictures, and quotations, in the language of their note.
HIDDEN = re.compile(r"<(head|script|style|pre|code|math|samp|svg|sub|q)\b.*?</\1>", re.S)
TEXT = re.compile(r">([^<>]+)<")
SHOWN = re.compile(r">([^<>]*[a-z][^<>]*)<|\b(?:title|aria-label|placeholder|alt)=\"([^\"]+)\"")
# Names, code and letters, which no language changes; the last are Sphinx's own Esperanto.
ALLOWED = re.compile(
    r"(?:[\W\d_]|GiB|MiB|KiB|TiB|B\b|GB|MB|TB|FLOPs?|(?:m|b|tr)illion\b|x\b|ms\b|s\b|"
    r"memlab|eo\b|English|Lorem|The memlab contributors|antaŭa|sekva|foreach|fused|sdpa|eager|"
    r"bitsandbytes|et al|i\b|"
    r"[A-Za-z]*[A-Z0-9][\w.+-]*|[a-z]+-\d\w*|[a-z]\d+(?:-\w+)+|[\w]+[._/][\w./]+|bf|fp|int|nf|q|k|v|o|e|m)+"
)


def pseudo(text):
    """The text with each vowel marked, but for what a translation has to keep."""
    text, _ = catalogue.in_context(text)
    done, at = "", 0
    for kept in KEPT.finditer(text):
        done += text[at : kept.start()].translate(MARKED) + kept[0]
        at = kept.end()
    return done + text[at:].translate(MARKED)


def shown(page):
    text = HIDDEN.sub(" ", page)
    return {" ".join(html.unescape(a or b).split()) for a, b in SHOWN.findall(text)} - {""}


def said(path):
    """What a chapter would keep, had a run in the pseudo-language said it."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]

    def marked(output):
        new = outputs.shown(output)
        if isinstance(new, str):
            return pseudo(new)
        return {kind: TEXT.sub(lambda t: f">{pseudo(t[1])}<", text) for kind, text in new.items()}

    kept = {c["id"]: list(map(marked, c["outputs"])) for c in cells if c.get("outputs")}
    return {"cells": kept, "questions": []}


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """The finished pages of the book in the pseudo-language."""
    folder = tmp_path_factory.mktemp("pseudo")
    spec = importlib.util.spec_from_file_location("book_in_pseudo", ROOT / "tools" / "book.py")
    book = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(book)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(catalogue, "LOCALE", folder / "locale")
        patch.setattr(check, "PACKAGE", folder / "package")
        patch.setattr(book, "BUILD", folder / "_build")
        patch.setattr(book, "SITE", folder / "_build" / "html")
        patch.setattr(book, "LANGUAGES", {"en": "English", PSEUDO: "Lorem"})
        stage._of.cache_clear()
        for name in sources.names():
            catalogue.update(PSEUDO, name, blocks := sources.blocks_of(name))
            assert catalogue.fill(PSEUDO, name, {b: pseudo(b) for b in blocks}) == []
        patch.setattr(outputs, "kept", lambda language, path: said(path))
        patch.setattr(lay, "spoken", nullcontext)  # memlab itself does not speak it
        assert book.offered() == ["en", PSEUDO]
        book.build(PSEUDO)
        yield book.SITE / PSEUDO
    stage._of.cache_clear()


def test_every_block_can_be_said_otherwise_and_keeps_what_it_must():
    import guard

    for name in sources.names():
        for block in sources.blocks_of(name):
            words = block.rpartition(catalogue.CONTEXT)[2]  # a table's name is not translated
            assert guard.problems(words, pseudo(block)) == [], name


@pytest.mark.deep  # the whole book is built again; test_languages reads the real ones each time
def test_nothing_of_a_page_escapes_translation(pages):
    left = {}
    for path in sorted(pages.rglob("*.html")):
        name = path.relative_to(pages).as_posix()
        if "_static" in name or name in OWN:
            continue
        plain = {text for text in shown(path.read_text("utf-8")) if not re.search("[áéíóú]", text)}
        for text in plain:
            if not re.search("[aeiou]", text) or text.partition(" · ")[0] in PRESETS:
                continue
            if not ALLOWED.fullmatch(text):
                left.setdefault(text, []).append(name)
    assert left == {}
