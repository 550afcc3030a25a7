"""The first page in a real browser: the step, alive, and its picture where no script runs."""

import gzip
import sys

import catalogue
import peaks
import pytest
from calculator_home import DOORS, HOME, HOME_CHOICES, LABELS
from test_calculator_page import READY, opened, until

# The browser and the servers of the other pages' tests are fixtures here too.
from test_pages import AXE, OTHERS, SITE, Watched, browser, roots, weight  # noqa: F401

from memlab.base.message import rendered
from memlab.page.answer import answered
from memlab.page.peak_files import reader
from memlab.page.table_peak import HILLS

PAGE = "en/intro.html"
ENGINE = SITE / "en" / "_static" / "calculator" / "micropython.wasm"
MOST = 450_000  # bytes, compressed, of the page and of all that its first live answer loads
MOST_CALLS = 40_000  # of Python functions, for one answer
PARTS = """() => [...document.querySelectorAll("#calc-towers rect, #calc-towers line")].map(
    part => ["x", "y", "width", "height", "y1", "fill"].map(name => part.getAttribute(name)))"""

pytestmark = [
    pytest.mark.skipif(not (SITE / PAGE).exists(), reason="no book: `make book` builds it"),
    pytest.mark.skipif(not ENGINE.exists(), reason="no node package"),
]


@pytest.fixture
def page(browser, roots):  # noqa: F811
    with Watched(browser, roots["http"]) as watched:
        opened(watched.page, roots["http"] + PAGE)
        yield watched.page
        assert watched.wrong == []


def verdict(**state):
    return answered(HOME | state, reader(peaks.kept()), advise=False)["verdict"]


@pytest.mark.parametrize(("scheme", "scripts"), [("http", False), ("file", False), ("file", True)])
def test_the_picture_of_one_run_stands_without_an_engine(browser, roots, scheme, scripts):  # noqa: F811
    with Watched(browser, roots[scheme], java_script_enabled=scripts) as watched:
        page = watched.page
        page.goto(roots[scheme] + PAGE)
        assert page.inner_text("#calc-verdict") == verdict()
        assert page.locator("#calc-towers g").count() == len(HILLS)
        assert page.locator("#calc-towers").bounding_box()["height"] > 100
        assert page.is_hidden("#calc-form")
        doors = page.locator(".calc-doors a").evaluate_all("all => all.map(a => a.href)")
        assert doors == [
            roots[scheme] + f"en/{name}" + ("#tokens=8192" if name == DOORS[0][0] else "")
            for name, *_ in DOORS
        ]
        assert watched.wrong == []


def test_the_answer_moves_with_what_is_chosen_and_comes_back(page):
    built = page.evaluate(PARTS)
    assert page.inner_text("#calc-verdict") == verdict()
    page.select_option("#calc-card", "B200")
    until(page, lambda: "fits B200" in page.inner_text("#calc-verdict"))
    assert page.inner_text("#calc-verdict") == verdict(card="B200")
    page.select_option("#calc-model", "qwen3-0.6b")
    until(page, lambda: "qwen3-0.6b" in page.inner_text("#calc-title"))
    page.select_option("#calc-tokens", "512")
    until(page, lambda: "512" in page.inner_text("#calc-title"))
    assert page.inner_text("#calc-verdict") == verdict(card="B200", model="qwen3-0.6b", tokens=512)
    assert page.evaluate(PARTS) != built
    for name, value in HOME.items():
        page.select_option(f"#calc-{name}", str(value))
    until(page, lambda: page.inner_text("#calc-verdict") == verdict())
    until(page, lambda: page.get_attribute("#calc-ask", "href").endswith("#tokens=8192"))
    again = page.evaluate(PARTS)
    assert len(again) == len(built) > 4 * 3
    for old, new in zip(built, again, strict=True):
        for a, b in zip(old[:-1], new[:-1], strict=True):
            assert a == b or float(a) == pytest.approx(float(b), abs=0.06)
        assert old[-1] == new[-1]


def test_every_model_and_card_of_the_calculator_can_be_chosen(page):
    options = "all => all.map(option => option.value)"
    for name, values in HOME_CHOICES.items():
        shown = page.locator(f"#calc-{name} option").evaluate_all(options)
        assert shown == [str(value) for value, _ in values]
    assert len(HOME_CHOICES["model"]) > 50 and len(HOME_CHOICES["card"]) > 20


def test_the_door_carries_what_was_asked(page):
    page.select_option("#calc-model", "qwen3-4b")
    page.select_option("#calc-card", "RTX 4090")
    page.select_option("#calc-tokens", "2048")
    until(page, lambda: "tokens=2048" in page.get_attribute("#calc-ask", "href"))
    said = page.inner_text("#calc-verdict")
    page.click("#calc-ask")
    page.wait_for_url("**/calculator.html#**")
    page.wait_for_selector(READY, state="attached", timeout=30_000)
    assert page.inner_text("#calc-verdict") == said
    shown = {name: page.input_value(f"#calc-{name}") for name in HOME}
    assert shown == {"model": "qwen3-4b", "tokens": "2048", "card": "RTX 4090"}


def test_a_refused_question_has_no_verdict(page):
    page.select_option("#calc-model", "gpt2")  # of 1,024 positions
    until(page, lambda: page.inner_text("#calc-wrong") != "")
    assert "8,192 tokens" in page.inner_text("#calc-wrong")
    assert "fit" not in page.inner_text("#calc-verdict")
    assert page.locator(".calc-stale").count() == 3
    page.select_option("#calc-tokens", "1024")
    until(page, lambda: page.inner_text("#calc-verdict").startswith("✓"))
    assert page.inner_text("#calc-wrong") == "" and page.locator(".calc-stale").count() == 0


def test_the_first_live_answer_costs_little(browser, roots):  # noqa: F811
    """In bytes, and in files of moments: advice, which it does not show, would need a second."""
    with Watched(browser, roots["http"]) as watched:
        opened(watched.page, roots["http"] + PAGE)
        watched.page.select_option("#calc-card", "RTX 4090")
        until(watched.page, lambda: "RTX 4090" in watched.page.inner_text("#calc-verdict"))
        assert len([url for url in watched.asked if "/peaks/" in url]) == 1
        assert len([url for url in watched.asked if url.endswith(".wasm")]) == 1
        assert weight(watched.asked, roots["http"]) <= MOST
    html = (SITE / PAGE).read_text(encoding="utf-8")
    assert "micropython" not in html and "home.mjs" not in html, "a busy browser would load it"
    assert len(gzip.compress(html.encode())) < 20_000


def test_an_answer_takes_few_steps():
    calls = 0

    def count(frame, event, argument):
        nonlocal calls
        calls += event == "call"

    lookup = reader(peaks.kept())
    answered(HOME, lookup, advise=False)  # the file is read
    sys.setprofile(count)
    try:
        answered(HOME | {"card": "RTX 4090"}, lookup, advise=False)
    finally:
        sys.setprofile(None)
    assert 1_000 < calls < MOST_CALLS


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_nothing_is_cut(browser, roots, mode):  # noqa: F811
    with Watched(browser, roots["http"], color_scheme=mode) as watched:
        page = watched.page
        if AXE.exists():
            watched.context.add_init_script(AXE.read_text(encoding="utf-8"))
        opened(page, roots["http"] + PAGE)
        cut = """() => [...document.querySelectorAll(".calc-home *")].filter(each => {
            const { left, right } = each.getBoundingClientRect();
            return left < 0 || right > innerWidth || (each.id !== "calc-hills" &&
                getComputedStyle(each).display !== "inline" && each.clientWidth > 0 &&
                each.scrollWidth > each.clientWidth + 1);
        }).map(each => each.outerHTML.slice(0, 80))"""
        for width in (320, 390, 768, 1280):
            page.set_viewport_size({"width": width, "height": 800})
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            for _ in range(20):  # what slides there after a change of width is not cut
                found = page.evaluate(cut)
                if not found:
                    break
                page.wait_for_timeout(50)
            assert found == [], width
        assert watched.wrong == []  # axe's own styles are refused
        for width in (390, 1280) if AXE.exists() else ():
            page.set_viewport_size({"width": width, "height": 800})
            found = page.evaluate("axe.run('.calc-home').then(found => found.violations)")
            assert [(rule["id"], [n["html"] for n in rule["nodes"]]) for rule in found] == []


@pytest.mark.sample(1)
@pytest.mark.parametrize("language", sorted({name.split("/")[0] for name in OTHERS}))
def test_it_speaks_the_language_of_the_page(browser, roots, language):  # noqa: F811
    words = catalogue.translations(language, "calculator-words")
    with Watched(browser, roots["http"]) as watched:
        page = watched.page
        opened(page, f"{roots['http']}{language}/intro.html")
        assert (
            page.text_content("#calc-verdict") == rendered(verdict(), words, language) != verdict()
        )
        for name, label in LABELS.items():
            assert page.text_content(f"label[for=calc-{name}]") == words[label]
        shown = page.locator(".calc-doors a").all_inner_texts()
        assert [text.split("\n") for text in shown] == [[words[a], words[b]] for _, a, b in DOORS]
        page.select_option("#calc-card", "B200")
        until(page, lambda: "B200" in page.inner_text("#calc-verdict"))
        assert page.text_content("#calc-verdict") == rendered(verdict(card="B200"), words, language)
        assert watched.wrong == []
