"""The calculator's first screen, and its page by keyboard, on paper and without scripts."""

import re

import calculator
import calculator_screen
import peaks
import pytest
from test_calculator_page import ENGINE_THERE, PAGE, opened, until

# The browser and the servers of the other pages' tests are fixtures here too.
from test_pages import SITE, Watched, browser, roots  # noqa: F401

from memlab.model import Model
from memlab.model.presets import PRESETS
from memlab.page.answer import answered
from memlab.page.controls import first as first_values
from memlab.page.peak_files import reader
from memlab.page.words import FITS_SO_FAR, TOO_MUCH_AT_REST
from memlab.units import text as sized

SIZES = [(1280, 900), (390, 844)]
TIGHT: dict[str, str] = {}
TOO_MUCH = {"model": "qwen3-8b", "card": "RTX 4090"}
FIRST = ("#calc-verdict", "#calc-remedy", "#calc-bar", "#calc-parts", "#calc-scale", ".calc-ways")
# What has the focus, and whether verdict or bar lie over any of it.
FOCUSED = """() => {
    const it = document.activeElement, own = it.getBoundingClientRect();
    const name = it.id || it.name || it.dataset.for || it.className || it.tagName;
    const over = [...document.querySelectorAll("#calc-verdict, #calc-bar")].filter(each => {
        const { top, bottom } = each.getBoundingClientRect();
        return top < own.bottom - 0.5 && own.top < bottom - 0.5;
    });
    const outside = own.bottom < 0 || own.top > innerHeight;
    return [name, Boolean(it.closest("#calc-form")), over.length > 0 || outside];
}"""
# Of each list that is seen: its widest option and the room for it, in pixels.
CUT = """() => {
    const pen = document.createElement("canvas").getContext("2d");
    const lists = [...document.querySelectorAll(".calc select")];
    return lists.filter(s => s.checkVisibility()).map(s => {
        const style = getComputedStyle(s);
        pen.font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
        const widest = Math.max(...[...s.options].map(o => pen.measureText(o.text).width));
        const pads = parseFloat(style.paddingLeft) + parseFloat(style.paddingRight);
        return [s.id, widest, s.clientWidth - pads - 20]; // less its arrow
    });
}"""
SHIFTS = """
    window.shifted = 0;
    new PerformanceObserver(list => {
        for (const each of list.getEntries()) if (!each.hadRecentInput) shifted += each.value;
    }).observe({ type: "layout-shift", buffered: true });
"""
MOST_SHIFTED = 0.1  # what web.dev calls good

pytestmark = [
    pytest.mark.skipif(not (SITE / PAGE).exists(), reason="no book: `make book` builds it"),
    ENGINE_THERE,
]


@pytest.fixture(scope="module")
def window(browser, roots):  # noqa: F811
    with Watched(browser, roots["http"]) as watched:
        yield watched


def asked(window, state, width=1280, height=900):
    page = window.page
    page.goto("about:blank")
    page.emulate_media(media="screen")
    page.set_viewport_size({"width": width, "height": height})
    window.wrong.clear()
    words = "&".join(f"{name}={value.replace(' ', '+')}" for name, value in state.items())
    opened(page, f"{window.root}{PAGE}{'#' * bool(words)}{words}")
    return page


def found(state):
    return answered(state, reader(peaks.kept()))


@pytest.mark.parametrize(("width", "height"), SIZES)
@pytest.mark.parametrize(("state", "fits"), [(TIGHT, "tight"), (TOO_MUCH, "no")])
def test_the_first_screen_has_verdict_bar_legend_and_a_way_out(window, state, fits, width, height):
    page = asked(window, state, width, height)
    page.wait_for_selector("#calc-remedy button")
    assert page.get_attribute("#calc-verdict", "data-fits") == fits
    places = {name: page.locator(name).bounding_box() for name in FIRST}
    tops = [place["y"] for place in places.values()]
    assert tops == sorted(tops) and tops[0] > 0, "in this order"
    for name, place in places.items():
        assert place["y"] + place["height"] <= height and place["width"] <= width, name
    wanted = found(state)
    parts = page.locator("#calc-parts li").all_inner_texts()
    assert [part.strip() for part in parts] == [
        f"{row['term']} {row['text']}" for row in wanted["rows"]
    ]
    fills = "all => all.map(each => each.querySelector('rect').getAttribute('fill'))"
    bar = page.locator("#calc-bar rect").evaluate_all("a => a.map(r => r.getAttribute('fill'))")
    assert page.locator("#calc-parts li").evaluate_all(fills) == bar
    first = (wanted["steps"] or [words for words, *_ in wanted["over"]])[0]
    assert page.inner_text("#calc-remedy span") == first
    sets = (wanted["sets"] or [sets for *_, sets in wanted["over"]])[0]
    page.click("#calc-remedy button")
    usual = first_values()
    for name, value in sets.items():
        if value == usual[name]:  # an address says what is not the usual
            continue
        until(page, lambda name=name, value=value: f"{name}={value}" in page.url)
    assert page.evaluate("document.activeElement.id") == "calc-verdict"
    assert window.wrong == []


def test_what_fits_needs_no_change_and_the_ways_leave_the_address(window):
    page = asked(window, {"model": "qwen3-0.6b"})
    assert page.get_attribute("#calc-verdict", "data-fits") == "yes"
    assert page.is_hidden("#calc-remedy") and page.is_hidden(".calc-ways a[href='#calc-advice']")
    page.click(".calc-ways a[href='#calc-result']")
    assert page.url.endswith("#model=qwen3-0.6b")
    until(page, lambda: page.evaluate("scrollY") > 300)
    assert page.evaluate("document.activeElement.id") == "calc-result"


@pytest.mark.parametrize(("width", "height"), SIZES)
@pytest.mark.parametrize("key", ["Tab", "Shift+Tab"])
def test_no_field_that_has_the_focus_is_covered(window, key, width, height):
    page = asked(window, TIGHT, width, height)
    page.focus(".calc-ways a" if key == "Tab" else "#calc-advice button")
    met = []
    for _ in range(60):
        page.keyboard.press(key)
        name, within, covered = page.evaluate(FOCUSED)
        if within:
            met.append(name)
            assert not covered, (name, key)
        elif met:
            break
    assert {"use", "calc-model", "calc-batch", "tokens", "calc-card", "calc-pipeline"} <= set(met)


@pytest.mark.parametrize("words", ["", "use=serve", "loop=distillation", "trained=qlora&zero=3"])
def test_no_list_is_cut(window, words):
    page = asked(window, dict(each.split("=") for each in words.split("&") if each), 1440)
    lists = page.evaluate(CUT)
    assert len(lists) > 3
    assert [one for one in lists if one[1] > one[2]] == []


def test_after_a_refusal_no_answer_of_another_model_is_left(window):
    page = asked(window, TIGHT)
    at = page.locator("#calc-tokens").bounding_box()["y"]
    page.select_option("#calc-model", "gpt2")  # of 1,024 positions
    until(page, lambda: page.inner_text("#calc-wrong") != "")
    for name in ("#calc-rows", "#calc-title", "#calc-towers", "#calc-formula", "#calc-copy"):
        assert page.is_hidden(name), name
    for name in ("#calc-bar", "#calc-parts", "#calc-remedy", "#calc-scale", ".calc-ways"):
        assert page.is_hidden(name), name
    lines = page.inner_text(".calc").splitlines()
    left = [line for line in lines if not re.fullmatch(r"\S+ · [\d.]+B", line.strip())]  # a list's
    left = "\n".join(left)
    assert "llama-3-8b ·" not in left and "75.39 GiB" not in left
    assert abs(page.locator("#calc-tokens").bounding_box()["y"] - at) < 90, "the fields stay"
    page.fill("#calc-tokens", "512")
    until(page, lambda: page.is_visible("#calc-rows"))
    assert "gpt2" in page.inner_text("#calc-title") and page.is_visible("#calc-bar")


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_a_refusal_has_its_reason_and_its_way_out_on_the_screen(window, width, height):
    page = asked(window, {}, width, height)
    page.locator("#calc-pipeline").scroll_into_view_if_needed()
    page.fill("#calc-tensor", "3")
    until(page, lambda: "does not divide K=8" in page.inner_text("#calc-wrong"))
    assert page.evaluate("scrollY") > height / 2
    page.wait_for_timeout(100)
    place = page.locator("#calc-wrong").bounding_box()
    assert 0 < place["y"] and place["y"] + place["height"] < height / 2
    assert "above" not in page.inner_text("#calc-verdict")
    page.fill("#calc-tensor", "1")
    until(page, lambda: not page.inner_text("#calc-wrong"))
    page.select_option("#calc-card", "Apple 16GB")
    until(page, lambda: "runs no CUDA" in page.inner_text("#calc-wrong"))
    place = page.locator("#calc-wrong button").bounding_box()
    assert 0 < place["y"] and place["y"] + place["height"] < height / 2
    page.click("#calc-wrong button")
    until(page, lambda: "engine=llama.cpp" in page.url)
    until(page, lambda: page.get_attribute("#calc-verdict", "data-fits") == "yes")
    assert not page.inner_text("#calc-wrong") and window.wrong == []


def test_a_formula_of_the_answer_before_does_not_stay(window):
    page = asked(window, TIGHT)
    usual = page.inner_text("#calc-formula")
    page.hover("button[data-term=logits]")
    assert page.inner_text("#calc-formula").startswith("logits: ")
    page.select_option("#calc-model", "qwen3-0.6b")
    until(page, lambda: "qwen3-0.6b" in page.inner_text("#calc-title"))
    formula = page.get_attribute("button[data-term=logits]", "data-formula")
    assert page.inner_text("#calc-formula") == f"logits: {formula}"
    page.select_option("#calc-model", "nanochat-d26")  # without logits
    until(page, lambda: page.locator("button[data-term=logits]").count() == 0)
    assert page.inner_text("#calc-formula") == usual


@pytest.mark.parametrize("card", ["H100 80GB", "RTX 3060"])
def test_of_an_unknown_peak_that_is_said_first(card):
    """Of a family without a table, on a card with room for what stays, and on one without."""
    told = found({"model": "nanochat-d26", "card": card, "tokens": 2048})
    assert not told["peak"] and told["counts"] == "step"
    fits = card == "H100 80GB"
    assert told["verdict"].pattern == (FITS_SO_FAR if fits else TOO_MUCH_AT_REST)
    assert re.match(r"(✗ )?The peak of this step is not known here: ", told["verdict"])
    assert told["total_text"] in told["verdict"] and told["state"] == ("" if fits else "no")


def test_a_copied_link_is_said(browser, roots):  # noqa: F811
    with Watched(browser, roots["http"]) as watched:
        watched.context.grant_permissions(["clipboard-read", "clipboard-write"])
        page = watched.page
        opened(page, f"{roots['http']}{PAGE}#model=qwen3-0.6b")
        usual = page.inner_text("#calc-copy")
        page.click("#calc-copy")
        until(page, lambda: page.inner_text("#calc-copy") == "Copied")
        until(page, lambda: page.inner_text("#calc-copied") == "The link was copied.")
        assert page.get_attribute("#calc-copied", "role") == "status"
        assert page.evaluate("navigator.clipboard.readText()") == page.url
        until(page, lambda: page.inner_text("#calc-copy") == usual)
        assert page.inner_text("#calc-copied") == "" and watched.wrong == []


def test_on_paper_it_has_its_address_and_its_formulas(window):
    page = asked(window, {"model": "qwen3-0.6b"})
    page.emulate_media(media="print")
    assert page.inner_text("#calc-address") == page.url
    for name in ("#calc-formula", "#calc-form", "#calc-copy", "#calc-remedy", ".calc-ways"):
        assert page.is_hidden(name), name
    told = "one => [one.dataset.formula, getComputedStyle(one, '::after').content]"
    formula, drawn = page.locator("button[data-term=weights]").evaluate(told)
    assert "attr(data-formula)" in drawn or formula in drawn
    assert page.is_visible("#calc-rows") and page.is_visible("#calc-verdict")
    page.emulate_media(media="screen")
    assert page.is_hidden("#calc-address") and page.is_visible("#calc-formula")


@pytest.mark.parametrize("name", ["calculator", "intro"])
@pytest.mark.parametrize("mode", ["light", "dark"])
def test_without_scripts_there_is_a_table_and_the_page_has_its_colours(browser, roots, name, mode):  # noqa: F811
    with Watched(browser, roots["http"], java_script_enabled=False, color_scheme=mode) as watched:
        page = watched.page
        page.goto(f"{roots['http']}en/{name}.html")
        rows = page.locator(f"#{calculator_screen.TABLE} tbody tr").all_inner_texts()
        cells = [[cell.strip() for cell in row.split("\t")] for row in rows]
        assert [row[0] for row in cells] == sorted(PRESETS)
        one = {row[0]: row[1:] for row in cells}["qwen3-8b"]
        model = Model.preset("qwen3-8b")
        told = found({"model": "qwen3-8b"})
        assert one == [
            f"{model.parameter_count:,}",
            sized(2 * model.parameter_count),
            told["heading"].values["recipe"],
            told["total_text"],
        ]
        links = page.locator("noscript a, .calc a").evaluate_all("all => all.map(a => a.href)")
        assert f"{roots['http']}en/cheat-sheet.html" in links
        assert calculator.LOADING not in page.inner_text("article") and page.is_hidden("#calc-form")
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        light = [int(part) > 128 for part in re.findall(r"\d+", ground)[:3]]
        assert light == [mode == "light"] * 3, ground
        assert [line for line in watched.wrong if ".js" not in line] == []


@pytest.mark.parametrize("name", ["intro", "calculator", "notebooks/05_activations"])
def test_little_moves_while_a_page_loads(browser, roots, name):  # noqa: F811
    with Watched(browser, roots["http"], viewport={"width": 390, "height": 844}) as watched:
        watched.context.add_init_script(SHIFTS)
        page = watched.page
        page.goto(f"{roots['http']}en/{name}.html")
        if not name.startswith("notebooks"):
            page.wait_for_selector("html[data-calculator=ready]", state="attached")
        page.evaluate("document.fonts.ready")
        page.wait_for_timeout(500)
        assert page.evaluate("shifted") < MOST_SHIFTED
        page.evaluate(
            "() => { const it = document.createElement('p'); it.style.height = '400px';"
            "document.querySelector('.bd-article h1').before(it); }"
        )
        until(page, lambda: page.evaluate("shifted") > MOST_SHIFTED)  # it is seen


def test_the_live_picture_of_the_first_page_is_as_high_as_the_drawn_one(browser, roots):  # noqa: F811
    heights = []
    for scripts in (False, True):
        with Watched(
            browser,
            roots["http"],
            viewport={"width": 390, "height": 844},
            java_script_enabled=scripts,
        ) as watched:
            page = watched.page
            page.goto(f"{roots['http']}en/intro.html")
            if scripts:
                page.wait_for_selector("html[data-calculator=ready]", state="attached")
            heights.append(page.locator(".calc-hills").bounding_box()["height"])
    assert abs(heights[0] - heights[1]) < 2


def test_every_sentence_of_the_first_screen_can_be_translated():
    words = calculator.words()
    for text in (
        calculator_screen.LEAD,
        calculator_screen.LOOKING,
        "Copied",
        "The link was copied.",
    ):
        assert text in words
    assert not [text for text in words if re.fullmatch(r"[\d.,]+ [KMG]iB", text)]
