"""The book on paper: in order, links to their own places, an outline, or plainly why not."""

import re
import shutil
from collections import Counter

import browser
import pdf
import pytest
from landing import MOVED

built = pytest.mark.skipif(
    not (pdf.book.SITE / "en" / pdf.book.FIRST).exists(), reason="no book: `make book` builds it"
)
FILES = {"intro.html", "notebooks/05_a.html", "notebooks/06_b.html"}


@pytest.mark.parametrize(
    ("given", "moved"),
    [
        ('<h1 id="x">', '<h2 id="notebooks-05_a--x">'),
        ('<a href="06_b.html#x">', '<a href="#notebooks-06_b--x">'),
        ('<a href="../intro.html">', '<a href="#intro">'),
        ('<a href="#x">', '<a href="#notebooks-05_a--x">'),
        ('<a href="https://a.org/b#c">', '<a href="https://a.org/b#c">'),
        ('<a href="../_sources/x.ipynb">', "<a >"),
        ('<img src="../_images/a.svg">', '<img src="_images/a.svg">'),
        (
            '<rect id="p" fill="url(#p)">',
            '<rect id="notebooks-05_a--p" fill="url(#notebooks-05_a--p)">',
        ),
        ("<details class='x'>", "<details open class='x'>"),
    ],
)
def test_a_page_moves_into_the_whole(given, moved):
    assert pdf.moved("notebooks/05_a.html", given, FILES) == moved


@built
def test_the_whole_holds_every_chapter_and_every_link_leads_somewhere():
    whole = pdf.whole("en")
    ids = Counter(re.findall(r'\bid="([^"]+)"', whole))
    assert [name for name, times in ids.items() if times > 1] == []
    assert set(re.findall(r'href="#([^"]+)"', whole)) - set(ids) == set()
    chapters = {path.stem for path in (pdf.book.SITE / "en" / "notebooks").glob("*.html")} - set(
        MOVED
    )
    contents = (pdf.book.SITE / "en" / "intro.html").read_text(encoding="utf-8")
    listed = list(dict.fromkeys(re.findall(r'href="notebooks/(\w+)\.html"', contents)))
    places = [whole.index(f'<section class="page" id="notebooks-{name}">') for name in listed]
    assert len(chapters) > 20 and set(listed) == chapters and places == sorted(places)
    assert "file://" not in whole and "<script" not in whole


@built
def test_a_chromium_prints_it_with_outline_and_links(tmp_path, monkeypatch):
    if not any(map(shutil.which, browser.PROGRAMS)):
        pytest.skip("no browser")
    first = [("intro.html", "Start"), ("part", "Part I"), ("anatomy.html", "The map")]
    monkeypatch.setattr(pdf, "contents", lambda page: first)
    monkeypatch.setattr(pdf, "PAPER", tmp_path)
    with browser.chromium() as program:
        file = pdf.print_book(program, "en")
    data = file.read_bytes()
    for part in (b"/Outlines", b"/StructTreeRoot", b"/Lang (en)", b"/Link"):
        assert part in data, part
    assert not (pdf.book.SITE / "en" / "print.html").exists()


def test_without_a_browser_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr(browser.shutil, "which", lambda name: None)
    none = pytest.raises(SystemExit, match="No Chromium found: none of google-chrome")
    with none, browser.chromium():
        pass
