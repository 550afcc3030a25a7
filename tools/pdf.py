"""Print the built book: one PDF with an outline, working links and formulas, drawn by a Chromium.

    python tools/pdf.py              builds what changed, writes _build/pdf/memlab-en.pdf, and a
                                     copy beside the site, whose pages then link to it
    python tools/pdf.py --lang en    only this language

The pages are those of the site, in the order of its table of contents and laid into one document.
Every id gets the name of its page in front, so that a link leads to the right one of twenty-odd
headings called "Exercises". Folded code and solutions are open.
"""

import argparse
import html
import os
import posixpath
import re
import shutil

from browser import chromium

import book

PAPER = book.BUILD / "pdf"
STYLES = ["styles/theme.css", "styles/pydata-sphinx-theme.css", "pygments.css", "memlab.css"]
PRINT = """
html { font-size: 10pt; }
body { background: #fff; font-size: 10pt; line-height: 1.45; }
.cover { height: 230mm; display: flex; flex-direction: column; justify-content: center; }
.cover h1 { font-size: 44pt; margin: 0; }
.cover p { font-size: 15pt; max-width: 130mm; }
.part, .page, .in-order { break-before: page; }
.part { padding-top: 80mm; }
.in-order ul { list-style: none; padding-left: 0; }
.in-order .title { font-weight: 700; margin-top: 3mm; }
h1, h2, h3, h4, h5 { break-after: avoid; color: #1a1a1a; margin: 0; padding: 5mm 0 2mm; }
h1 { font-size: 24pt; }
h2 { font-size: 20pt; }
h3 { font-size: 14pt; }
h4, h5 { font-size: 11.5pt; }
.headerlink, .above-input > summary, .above-output > summary, .memlab-about { display: none; }
details { border: 0 !important; box-shadow: none !important; }
details { padding: 0 !important; margin: 0 !important; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; font-size: 8pt !important; }
pre { background: #f5f5f5; border: 0; padding: 2mm 3mm; margin: 2mm 0; }
.cell_output pre { background: none; }
figure, img, tr, .admonition-title { break-inside: avoid; }
.bd-article .memlab-figure > :is(img, svg) { min-width: 0; max-width: 150mm; }
.pst-scrollable-table-container, .memlab-figure, div.math { overflow: visible; }
.cell_output .output { overflow: visible; }
figcaption { font-size: 9pt; color: #444; }
table { font-size: 8.5pt; border-collapse: collapse; }
th, td { padding: 0.8mm 2mm; text-align: left; vertical-align: top; }
table:not(.memlab-ledger) :is(th, td) { border-bottom: 0.2mm solid #bbb; }
table.memlab-ledger.wide { font-size: 7pt; }
table.memlab-ledger :is(th, td) { padding: 0.5mm 2.5mm 0.5mm 0; }
table.memlab-ledger .words { white-space: normal; }
:is(td, th, li) p { margin: 0; }
"""
FOOT = (
    '<p style="font:8px sans-serif;width:100%;text-align:center">'
    '<span class="pageNumber"></span></p>'
)


def contents(page):
    """What stands in the table of contents, in order: ("part", title) or (file, title)."""
    nav = page[page.index('class="bd-links') : page.index("</nav>", page.index('class="bd-links'))]
    found = re.findall(
        r'<span class="caption-text">(.*?)</span>|<a class="[^"]*internal" href="(.*?)">(.*?)</a>',
        nav,
        re.S,
    )
    for caption, target, title in found:
        if target.startswith("checks/"):  # the code of the tests is for the screen
            continue
        yield ("part", caption) if caption else (book.FIRST if target == "#" else target, title)


def anchor(file, fragment=""):
    """The one id of a place in the whole document."""
    return f"{file.removesuffix('.html').replace('/', '-')}--{fragment}".rstrip("-")


def moved(file, article, files):
    """A page's text with its ids, links and pictures as they are in the whole document."""
    here = posixpath.dirname(file)

    def link(match):
        name, target = match[1], html.unescape(match[2])
        if re.match(r"[a-z]+:", target):
            return match[0]
        path, _, fragment = target.partition("#")
        path = posixpath.normpath(posixpath.join(here, path)) if path else file
        if name == "src":
            return f'src="{path}"'
        if "=" in fragment:  # a question to the calculator, which has no place on its page
            fragment = ""
        # What is no page of the book (a source to download) has no place on paper.
        return f'href="#{anchor(path, fragment)}"' if path in files else ""

    article = re.sub(r'\b(href|src)="([^"]*)"', link, article)
    article = re.sub(r'\bid="([^"]*)"', lambda m: f'id="{anchor(file, m[1])}"', article)
    article = re.sub(r"url\(#([^)]*)\)", lambda m: f"url(#{anchor(file, m[1])})", article)
    article = article.replace("<details", "<details open")
    article = re.sub(r"<script\b.*?</script>", "", article, flags=re.S)  # paper runs nothing
    return re.sub(r"<(/?)h([1-5])\b", lambda m: f"<{m[1]}h{int(m[2]) + 1}", article)


def whole(language):
    """The book as one page of HTML, to lie beside the site's first page."""
    site = book.SITE / language
    entries = list(contents((site / book.FIRST).read_text(encoding="utf-8")))
    files = {file for file, _ in entries}
    parts, lines = [], []
    for number, (file, title) in enumerate(entries):
        if file == "part":
            parts.append(f'<section class="part" id="part-{number}"><h1>{title}</h1></section>')
            lines.append(f'<li class="title"><a href="#part-{number}">{title}</a></li>')
            continue
        page = (site / file).read_text(encoding="utf-8")
        article = re.findall(r'<article class="bd-article">(.*?)</article>', page, re.S)[0]
        text = f'<div class="bd-article">{moved(file, article, files)}</div>'
        parts.append(f'<section class="page" id="{anchor(file)}">{text}</section>')
        lines.append(f'<li><a href="#{anchor(file)}">{title}</a></li>')
    styles = "\n".join(f'<link rel="stylesheet" href="_static/{name}">' for name in STYLES)
    title = "memlab: where does the memory go?"
    return f"""<!doctype html>
<html lang="{language}" data-theme="light"><head><meta charset="utf-8"><title>{title}</title>
{styles}<style>{PRINT}</style></head><body>
<section class="cover"><h1>memlab</h1><p>Where every byte of GPU memory goes when a language model
is trained or served</p></section>
<section class="in-order"><h1>Contents</h1><ul>{"".join(lines)}</ul></section>
{"".join(parts)}</body></html>
"""


def print_book(browser, language):
    """Print one language; returns the file."""
    PAPER.mkdir(parents=True, exist_ok=True)
    page_file = book.SITE / language / "print.html"
    target = PAPER / f"memlab-{language}.pdf"
    try:
        page_file.write_text(whole(language), encoding="utf-8")
        page = browser.new_page()
        page.goto(page_file.as_uri(), wait_until="load")
        margin = {"top": "16mm", "bottom": "18mm", "left": "20mm", "right": "20mm"}
        page.pdf(
            path=target,
            format="A4",
            margin=margin,
            outline=True,
            tagged=True,
            print_background=True,
            display_header_footer=True,
            header_template="<span></span>",
            footer_template=FOOT,
        )
    finally:
        page_file.unlink(missing_ok=True)
    return target


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lang", nargs="+", choices=book.LANGUAGES, default=list(book.LANGUAGES))
    options = parser.parse_args()
    with chromium() as browser:  # first, so that who has none hears it before the build
        for language in options.lang:
            book.build(language)
            printed = print_book(browser, language)
            shutil.copy(printed, book.paper(language))
            print(os.path.relpath(printed))
    book.furnish_pages()


if __name__ == "__main__":
    main()
