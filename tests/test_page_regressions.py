"""What readers met in the pages and was mended: each thing once more, in one window."""

import json
import re
from urllib.parse import quote

import pytest
from test_calculator_page import READY, until
from test_pages import OTHERS, PAGES, Watched, browser, roots  # noqa: F401
from test_questions import ANSWERS

CHAPTER = "notebooks/07_step.html"
SPOKEN = "notebooks/27_divide_text.html"  # a chapter whose answers are in every language
WHOLE = "notebooks/30_predicted_28.html"  # one whose headings are, too
PHONE, LYING, DESK = (390, 844), (844, 390), (1280, 800)
LANGUAGES = sorted({name.split("/")[0] for name in OTHERS})

pytestmark = pytest.mark.skipif(not PAGES, reason="no book: `make book` builds it")


@pytest.fixture(scope="module")
def watched(browser, roots):  # noqa: F811
    with Watched(browser, roots["http"], reduced_motion="reduce") as watched:
        yield watched


def sized(page, size):
    page.set_viewport_size(dict(zip(("width", "height"), size, strict=True)))


@pytest.mark.parametrize("language", LANGUAGES)
def test_sliders_move_in_every_language(watched, language):
    """They were alive in English alone."""
    page = watched.page
    page.goto(f"{watched.root}{language}/{SPOKEN}")
    page.wait_for_selector(".memlab-question[data-live=yes]")
    (kept,) = json.loads((ANSWERS / "27_divide_text.json").read_text(encoding="utf-8"))[
        "questions"
    ][:1]
    assert page.inner_text(".memlab-question strong") != kept["question"]
    before = page.inner_html(".memlab-answer")
    page.locator(".memlab-question input[type=range]").first.press("End")
    assert page.inner_html(".memlab-answer") != before
    drawing = page.locator(".memlab-answer .memlab-figure > svg")
    assert "var(--memlab-ink)" in drawing.first.inner_html()
    assert watched.wrong == []


def test_another_language_opens_at_the_same_section(watched):
    """The place in the page was dropped."""
    page = watched.page
    page.goto(f"{watched.root}en/{WHOLE}")
    place = page.locator(".bd-article section section").nth(2).get_attribute("id")
    page.evaluate("place => { location.hash = place; }", place)
    page.locator(".memlab-languages > summary").click()
    page.locator(".memlab-languages a[lang=zh-TW]").click()
    page.wait_for_url(f"**/zh-TW/{WHOLE}#*")
    there = page.locator(".bd-article section section").nth(2).get_attribute("id")
    until(page, lambda: page.evaluate("location.hash") == f"#{there}")
    assert there != place  # an anchor is made of a heading's words
    assert watched.wrong == []


LLAMA = {"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32}
LLAMA |= {"num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336}
LLAMA |= {"vocab_size": 128256, "max_position_embeddings": 8192}
PASTE = """text => {
    const box = document.getElementById("calc-config");
    box.value = text;
    box.dispatchEvent(new Event("input", { bubbles: true }));
}"""


def test_configs_that_froze_were_refused_or_were_misread(watched):
    """A link with a thousand million layers, a family of this year, weights in four bits."""
    page = watched.page
    sized(page, DESK)
    deep = quote(json.dumps(LLAMA | {"num_hidden_layers": 10**9}))
    page.goto(f"{watched.root}en/calculator.html#model=config&config={deep}")
    page.wait_for_selector(READY, state="attached", timeout=30_000)
    wrong, verdict = (lambda: page.inner_text("#calc-wrong")), page.locator("#calc-verdict")
    assert wrong() == "1,000,000,000 layers: this page supports up to 10,000"
    page.evaluate(PASTE, json.dumps(LLAMA | {"model_type": "gemma2"}))
    until(page, lambda: "your gemma2" in page.inner_text("#calc-title"))
    assert wrong() == "" and verdict.inner_text().startswith("✗ It does not fit")
    bits = {"quantization_config": {"quant_method": "bitsandbytes", "load_in_4bit": True}}
    page.evaluate(PASTE, json.dumps(LLAMA | bits))
    until(page, lambda: wrong() != "")
    assert "quantization_config" in wrong() and "fit" not in verdict.inner_text()
    assert watched.wrong == []


# What has the focus and is covered by something else at its middle.
COVERED = """() => {
    const one = document.activeElement, { left, top, width, height } = one.getBoundingClientRect();
    if (one === document.body || !one.closest("#calc-form")) return null;
    const found = document.elementFromPoint(left + width / 2, top + height / 2);
    const label = one.closest("label");
    return found && (one.contains(found) || label?.contains(found)) ? ""
        : `${one.name || one.id} at ${Math.round(top)} under ${found?.className || found?.tagName}`;
}"""


@pytest.mark.parametrize("size", [DESK, PHONE, LYING], ids=["desk", "phone", "lying"])
def test_no_bar_covers_what_has_the_focus(watched, size):
    """Going back with Shift+Tab led under the sticky answer."""
    page = watched.page
    sized(page, size)
    page.goto(f"{watched.root}en/calculator.html")
    page.wait_for_selector(READY, state="attached", timeout=30_000)
    page.locator("#calc-copy").focus()
    covered, asked = [], 0
    for _ in range(60):
        page.keyboard.press("Shift+Tab")
        found = page.evaluate(COVERED)
        asked += found is not None
        covered += [found] if found else []
    assert asked > 8 and covered == []
    assert watched.wrong == []


def test_print_begins_with_the_text(watched):
    """The first sheet was mostly the list of contents, and what is dark went on paper so."""
    page = watched.page
    sized(page, DESK)
    page.emulate_media(color_scheme="dark")
    page.goto(f"{watched.root}en/{CHAPTER}")
    page.wait_for_selector("html[data-theme=dark]")
    page.emulate_media(media="print", color_scheme="dark")
    page.wait_for_selector("html[data-theme=light]")
    title = page.locator(".bd-article h1")
    above = page.evaluate(
        """() => [...document.querySelectorAll("body *")].filter(one => one.checkVisibility() &&
            [...one.childNodes].some(node => node.nodeType === 3 && node.data.trim()) &&
            !one.closest(".bd-article") && one.getBoundingClientRect().height > 1
        ).map(one => one.textContent.trim().slice(0, 40))"""
    )
    assert above == []
    assert title.bounding_box()["y"] < 150
    inks = "all => all.map(one => getComputedStyle(one).color)"
    for colour in page.locator(".bd-article :is(h1, p)").evaluate_all(inks)[:5]:
        assert sum(map(int, re.findall(r"\d+", colour)[:3])) < 400, "pale on white paper"
    page.emulate_media(media="screen", color_scheme="dark")
    page.wait_for_selector("html[data-theme=dark]")
    page.emulate_media(color_scheme="light")


# The least contrast of what the search marks with its own ground.
MARKED = """() => {
    const light = colour => {
        const [r, g, b] = colour.match(/[\\d.]+/g).map(part => part / 255)
            .map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
    };
    const all = [...document.querySelectorAll("span.highlighted")].map(one => {
        const { color, backgroundColor } = getComputedStyle(one);
        const pair = [light(color), light(backgroundColor)];
        return Math.max(...pair) / Math.min(...pair);
    });
    return [all.length, Math.min(...all)];
}"""


def test_what_the_search_marks_can_be_read(watched):
    """In a link, in the dark, it was pale on pale."""
    page = watched.page
    page.goto(f"{watched.root}en/{CHAPTER}?highlight=optimizer")
    page.locator("a span.highlighted").first.wait_for(state="attached")
    for mode in ("light", "dark"):
        page.emulate_media(color_scheme=mode)
        page.wait_for_selector(f"html[data-theme={mode}]")
        count, least = page.evaluate(MARKED)
        assert count > 5 and least >= 4.5
