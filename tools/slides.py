"""Make the slides of chapters and courses from the notebooks' cells, one folder for each of them.

    python tools/slides.py                          every chapter and course, in English
    python tools/slides.py --lang pt-BR 07_step     this chapter in this language
    python tools/slides.py --course 90-minutes      this course of book/courses
    python tools/slides.py --pdf                    each deck on paper too; needs a Chromium

    _build/slides/<language>/index.html             leads to the decks
    _build/slides/<language>/<deck>/index.html      a deck; the arrows move, S shows the notes
    _build/slides/<language>/<deck>/<deck>.pdf

The rules by which a notebook becomes slides are told in tools/decks/deck.py, those of a course in
tools/decks/course.py. A folder is whole: it opens from a disk as from a server, and asks no other
address for anything.
"""

import argparse
import html
import json
import os
import shutil
import sys
import tempfile
from functools import cache
from pathlib import Path

import courses
import typeface
from browser import chromium
from decks.blocks import inline
from decks.course import Course
from decks.deck import Deck
from pygments.formatters import HtmlFormatter

sys.path.append(str(Path(__file__).resolve().parent / "i18n"))
import catalogue  # noqa: E402
import lay  # noqa: E402
import stage  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "_build" / "slides"
OWN = ROOT / "tools" / "decks"
REVEAL = ROOT / "node_modules" / "reveal.js"
FILES = ("reveal.js", "reveal.css")
ENGLISH = "en"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self'; "
    "base-uri 'none'; form-action 'none'"
)
PAGE = """<!doctype html>
<html lang="{language}"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{title}</title>
<link rel="stylesheet" href="reveal.css">
<link rel="stylesheet" href="deck.css">
</head><body>
<div class="reveal"><div class="slides">
{slides}
</div></div>
<script src="reveal.js"></script>
<script src="deck.js"></script>
</body></html>
"""
SECTION = """<section><div class="slide {kind}"><h2>{title}</h2><div class="body">
{parts}
</div></div>{notes}</section>"""
CONTENTS = """<!doctype html>
<html lang="{language}"><head><meta charset="utf-8"><title>memlab</title></head>
<body><h1>memlab</h1>
<ul>
{lines}
</ul></body></html>
"""


def chapters():
    """The pages that are taught, in order: those with a number, and the sheet before them."""
    notebooks = ROOT / "notebooks"
    return [notebooks / "one_sheet.ipynb", *sorted(notebooks.glob("[0-9]*.ipynb"))]


def chapters_of(course):
    """The chapters of a course, by the names of their files."""
    return {*courses.chapters_of(courses.read(ROOT)[course])}


def notebooks(language, names, folder):
    """These chapters in a language, as `make lab` and the book lay them out: name -> notebook."""
    source = ROOT / "notebooks"
    if language != ENGLISH:
        source = Path(folder)
        lay.notebooks(language, source, names)
    files = {name: source / f"{name}.ipynb" for name in names}
    return {name: json.loads(file.read_text("utf-8")) for name, file in files.items()}


def translated(language):
    """A function that puts the Markdown of a page of book/ into the language: (page, text)."""
    words = cache(lambda page: stage.words_of(language, page))
    if language == ENGLISH:
        return lambda page, text: text
    return lambda page, text: stage.page(text, words(page), None, language)


def section(slide):
    notes = "\n".join(slide.notes)
    return SECTION.format(
        kind=slide.kind,
        title=inline(slide.title),
        parts="\n".join(slide.parts),
        notes=f'<aside class="notes">{notes}</aside>' if notes else "",
    )


def page(deck, language):
    title = html.escape(deck.title.replace("`", ""))
    slides = "\n".join(map(section, deck.slides))
    return PAGE.format(language=language, policy=POLICY, title=title, slides=slides)


def write(deck, language, out=OUT):
    """A deck with all that it needs; returns its folder."""
    folder = out / language / deck.name
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "_static").mkdir(parents=True)
    made = folder / "_static" / "memlab.css"
    shutil.copy(OWN / "deck.css", made)
    typeface.stage(folder)  # the faces' names go into the sheet of this name
    rules = (
        (folder / "_static" / "memlab.css").read_text("utf-8").replace("fonts/", "_static/fonts/")
    )
    (folder / "deck.css").write_text(rules + HtmlFormatter().get_style_defs("pre"), "utf-8")
    made.unlink()
    shutil.copy(OWN / "deck.js", folder)
    for name in FILES:
        shutil.copy(REVEAL / "dist" / name, folder)
    shutil.copy(REVEAL / "LICENSE", folder / "reveal-LICENSE.txt")
    (folder / "index.html").write_text(page(deck, language), encoding="utf-8")
    return folder


def contents(language, out=OUT):
    """The page that leads to every deck of a language."""
    known = [*courses.ORDER, *(path.stem for path in chapters())]
    there = [name for name in known if (out / language / name).is_dir()]
    lines = []
    for name in there:
        text = (out / language / name / "index.html").read_text(encoding="utf-8")
        title = text[text.index("<title>") + 7 : text.index("</title>")]
        lines.append(f'<li><a href="{name}/index.html">{title}</a></li>')
    file = out / language / "index.html"
    file.write_text(CONTENTS.format(language=language, lines="\n".join(lines)), encoding="utf-8")
    return file


def printed(browser, folder):
    """A deck on paper: reveal.js lays its slides out for print, one to a sheet."""
    # reveal.js writes a style of its own for this, which the page's policy forbids.
    context = browser.new_context(viewport={"width": 1280, "height": 720}, bypass_csp=True)
    context.set_default_timeout(300_000)  # a busy machine is no failure
    sheet = context.new_page()
    sheet.goto((folder / "index.html").as_uri() + "?print-pdf")
    sheet.wait_for_selector("html[data-ready]", state="attached")
    target = folder / f"{folder.name}.pdf"
    sheet.pdf(path=target, prefer_css_page_size=True, print_background=True, tagged=True)
    context.close()
    return target


def main(arguments=None):
    known = [path.stem for path in chapters()]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lang", choices=[ENGLISH, *catalogue.languages()], default=ENGLISH)
    parser.add_argument("--pdf", action="store_true", help="print each deck too")
    parser.add_argument("--course", nargs="+", choices=courses.ORDER, default=[])
    parser.add_argument("chapter", nargs="*", help="chapters by the names of their files")
    options = parser.parse_args(arguments)
    names, taught = [Path(name).stem for name in options.chapter], options.course
    if not names and not taught:
        names, taught = known, courses.ORDER
    if unknown := sorted(set(names) - set(known)):
        parser.error(f"no chapter {unknown[0]!r}; known: {', '.join(known)}")
    if not (REVEAL / "dist").is_dir():
        sys.exit("No reveal.js in node_modules: install Node with npm, then `make slides`")
    with tempfile.TemporaryDirectory() as laid:
        of_courses = (chapters_of(name) for name in taught)
        found = notebooks(options.lang, {*names}.union(*of_courses), laid)
    said = translated(options.lang)
    decks: list = [Deck(found[name], name) for name in names]
    decks += [Course(ROOT, name, found, said) for name in taught]
    folders = [write(deck, options.lang) for deck in decks]
    if options.pdf:
        with chromium() as browser:
            for folder in folders:
                print(os.path.relpath(printed(browser, folder)))
    print("Slides:", os.path.relpath(contents(options.lang)))


if __name__ == "__main__":
    main()
