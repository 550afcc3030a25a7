"""The text face comes from the site, is small, and is read in lines of about 70 letters."""

import pytest
import typeface

# The browser and the servers of the other pages' tests are fixtures here too.
from test_pages import SITE, Watched, browser, roots  # noqa: F401

memlab_assets = pytest.importorskip("memlab_assets", reason="no book: Sphinx is not installed")

FONTS = SITE / "en" / "_static" / "fonts"
CHAPTER = "en/notebooks/17_small_optimizers.html"
MOST = 60_000  # bytes of all its files
LOADED = """() => document.fonts.ready.then(() =>
    [...document.fonts].filter(one => one.status === "loaded").map(
        one => [one.family.replaceAll('"', ""), one.style, one.weight]))"""
# Letters of each whole line of the paragraphs that have three lines or more.
LINES = """() => [...document.querySelectorAll(".bd-article section > p")].flatMap(p => {
    const lines = [];
    const walk = document.createTreeWalker(p, NodeFilter.SHOW_TEXT);
    for (let node; (node = walk.nextNode());)
        for (let i = 0; i < node.length; i++) {
            const range = document.createRange();
            range.setStart(node, i);
            range.setEnd(node, i + 1);
            const top = Math.round(range.getBoundingClientRect().top / 8);
            lines.at(-1)?.[0] === top ? (lines.at(-1)[1] += 1) : lines.push([top, 1]);
        }
    const whole = lines.slice(0, -1).map(line => line[1]);
    return p.querySelector("code, math") || lines.length < 3 ? [] : whole;
})"""

built = [
    pytest.mark.skipif(not SITE.exists(), reason="no book: `make book` builds it"),
    pytest.mark.skipif(not typeface.faces(), reason="no node package with the text face"),
]


@pytest.fixture(scope="module")
def page(browser, roots):  # noqa: F811
    """A chapter that has headings of two levels and slanted words."""
    with Watched(browser, roots["http"], viewport={"width": 1280, "height": 900}) as watched:
        watched.page.goto(roots["http"] + CHAPTER)
        yield watched.page
        assert watched.wrong == []


class TestBuilt:
    pytestmark = built

    def test_its_files_are_small_and_have_their_licence(self):
        files = sorted(FONTS.glob("*.woff2"))
        assert len(files) == len(typeface.FACES)
        assert 30_000 < sum(file.stat().st_size for file in files) <= MOST
        assert "SIL Open Font License, Version 1.1" in (FONTS / typeface.LICENCE).read_text("utf-8")

    def test_the_page_is_set_in_it(self, page):
        faces = {(style, weight) for _, style, weight in page.evaluate(LOADED)}
        assert {("normal", "400"), ("normal", "600 700")} <= faces
        own = {family for family, *_ in page.evaluate(LOADED)} - {typeface.STANDS_IN}
        assert own == {typeface.FAMILY}

    def test_a_line_has_about_seventy_letters(self, page):
        lines = sorted(page.evaluate(LINES))
        assert len(lines) > 20 and 62 <= lines[len(lines) // 2] <= 78, lines
        assert lines[-1] <= 90

    def test_a_heading_is_heavier_than_those_below_it(self, page):
        weight = "all => all.map(one => Number(getComputedStyle(one).fontWeight))"
        second = set(page.locator(".bd-article h2").evaluate_all(weight))
        third = set(page.locator(".bd-article h3").evaluate_all(weight))
        assert second and third and min(second) >= 600 > 500 >= max(third)

    def test_in_a_folder_it_is_there_or_the_system_s_face_is(self, browser, roots):  # noqa: F811
        with Watched(browser, roots["file"]) as watched:
            watched.page.goto(roots["file"] + "en/notation.html")
            watched.page.evaluate(LOADED)
            assert watched.wrong == []


def test_without_the_files_nothing_is_said_of_them(tmp_path, monkeypatch):
    monkeypatch.setattr(typeface, "PACKAGE", tmp_path / "none")
    sheet = tmp_path / "_static" / "memlab.css"
    sheet.parent.mkdir()
    sheet.write_text("a { b: c }")
    typeface.stage(tmp_path)
    assert sheet.read_text() == "a { b: c }" and not (tmp_path / typeface.PLACE).exists()


def test_a_rule_stays_if_a_page_may_use_it():
    css = (
        "/*! licence */a{x:1}.used,.gone{x:2}.gone{x:3}.used:not(.gone){x:4}:is(.gone,.used) b{x:5}"
        "@media print{.gone .used{x:6}.used{x:7}}@media x{.gone{x:8}}@font-face{src:y}"
        "[data-x='.gone']{x:9}html .gone>p,h1{x:10}"
    )
    assert memlab_assets.used(css, {"used"}) == (
        "/*! licence */a{x:1}.used{x:2}.used:not(.gone){x:4}:is(.gone,.used) b{x:5}"
        "@media print{.used{x:7}}@font-face{src:y}[data-x='.gone']{x:9}h1{x:10}"
    )
