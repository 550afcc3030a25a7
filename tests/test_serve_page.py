"""*Train* or *Serve* on the calculator's page, and a kept answer in its address, in a browser."""

import json
from urllib.parse import parse_qs, urlsplit

import catalogue
import peaks
import pytest
from calculator_states import MARKUP
from test_calculator_page import PAGE, TINY, opened, until

# The browser and the servers of the other pages' tests are fixtures here too.
from test_pages import SITE, Watched, browser, roots  # noqa: F401

from memlab.base.message import rendered
from memlab.page.answer import answered
from memlab.page.controls import first
from memlab.page.peak_files import reader
from memlab.page.serve_controls import START

ENGINE = SITE / "en" / "_static" / "calculator" / "micropython.wasm"
SHOWN = (
    """all => all.filter(one => one.offsetParent && one.type !== "range").map(one => one.name)"""
)
BOTH = {"model", "card", "use", ""}  # the field of a config, and that of its file, have no name

pytestmark = [
    pytest.mark.skipif(not (SITE / PAGE).exists(), reason="no book: `make book` builds it"),
    pytest.mark.skipif(not ENGINE.exists(), reason="no node package"),
]


@pytest.fixture(scope="module")
def watched(browser, roots):  # noqa: F811
    with Watched(browser, roots["http"]) as one:
        yield one
        assert one.wrong == []


@pytest.fixture
def page(watched, roots):  # noqa: F811
    """The page anew, in the one window of this file."""
    watched.page.goto("about:blank")
    opened(watched.page, roots["http"] + PAGE)
    return watched.page


def wanted(**state):
    return answered(state, reader(peaks.kept()))


def controls(page):
    return set(page.locator("#calc-form :is(select, input, textarea)").evaluate_all(SHOWN))


def serve(page):
    page.eval_on_selector("[name=use][value=serve]", "one => one.click()")  # wherever it is by now
    until(page, lambda: "use=serve" in page.url)


def test_each_use_shows_its_own_controls(page):
    adapters = {"rank", "targets", "lora_dropout"}  # which all parameters need not
    teacher = {"teacher", "teacher_weights"}  # which only a distillation has
    gguf = {"gguf", "gguf_kv"}  # which llama.cpp alone has
    trains = {name for name in first() if name not in START} - {"gib", "completion"}
    trains -= adapters | teacher
    assert controls(page) - BOTH == trains - BOTH
    page.select_option("#calc-loop", "distillation")
    assert teacher <= controls(page)
    page.select_option("#calc-loop", "plain")
    page.select_option("#calc-trained", "lora")
    assert controls(page) - BOTH == (trains | adapters) - BOTH
    page.select_option("#calc-trained", "all")
    serve(page)
    assert controls(page) - BOTH == set(START) - BOTH - gguf
    page.select_option("#calc-engine", "llama.cpp")
    until(page, lambda: "engine=llama.cpp" in page.url)
    assert controls(page) - BOTH == gguf | {"engine", "users", "context"}
    page.select_option("#calc-engine", "none")
    until(page, lambda: "engine=none" in page.url)
    assert controls(page) - BOTH == {"engine", "dtype", "users", "context"}
    page.check("[name=use][value=train]", force=True)
    until(page, lambda: "use=serve" not in page.url)
    assert controls(page) - BOTH == trains - BOTH
    page.focus("[name=use][value=train]")
    page.keyboard.press("ArrowRight")
    until(page, lambda: "use=serve" in page.url)
    names = page.locator("[name=use]").evaluate_all(
        "all => all.map(one => one.labels[0].innerText)"
    )
    assert names == ["Training", "Inference (serving)"]


def test_it_says_who_can_be_served(page):
    serve(page)
    page.fill("#calc-users", "60")
    until(page, lambda: "60 concurrent conversations" in page.inner_text("#calc-verdict"))
    found = wanted(use="serve", users=60)
    assert page.inner_text("#calc-verdict") == found["verdict"]
    assert page.inner_text("#calc-serving") == found["serving"]
    assert page.inner_text("#calc-total-bytes") == f"{found['total']:,}"
    assert page.locator("#calc-towers *").count() == 0 and page.is_hidden("#calc-towers")
    page.wait_for_selector("#calc-advice:not([inert])")  # a moment after the verdict
    assert page.locator("#calc-changes code").all_text_contents() == found["flags"]
    page.click("#calc-changes li:first-child .calc-apply")  # the cache in FP8
    until(page, lambda: page.inner_text("#calc-verdict").startswith("✓"))
    assert page.input_value("#calc-kv") == "fp8" and "kv=fp8" in page.url
    page.select_option("#calc-dtype", "awq")
    until(page, lambda: "--quantization awq" in page.text_content("#calc-command"))
    packed = wanted(use="serve", users=60, kv="fp8", dtype="awq")
    until(page, lambda: page.inner_text("#calc-total-bytes") == f"{packed['total']:,}")
    page.fill("#calc-loaded", "5400")
    until(page, lambda: "--loaded" in page.text_content("#calc-command"))


def test_the_address_holds_what_is_served(page, roots):  # noqa: F811
    words = "#use=serve&engine=sglang&users=3&context=4096&kv=fp8&share=85&cards=2"
    page.goto("about:blank")
    opened(page, roots["http"] + PAGE + words)
    said = {"engine": "sglang", "users": 3, "context": 4096, "kv": "fp8", "share": 85, "cards": 2}
    assert page.inner_text("#calc-verdict") == wanted(use="serve", **said)["verdict"]
    assert page.is_checked("[name=use][value=serve]")
    for words in ("use=eat", "engine=tgi", "users=-1", f"kept={MARKUP}=1"):
        page.goto("about:blank")
        opened(page, f"{roots['http']}{PAGE}#{words}")
        until(page, lambda: page.inner_text("#calc-wrong") != "")
        assert page.locator(".calc img").count() == 0
        assert page.inner_text("#calc-verdict") == wanted()["verdict"]


def test_a_copied_link_shows_both_answers(page):
    page.select_option("#calc-model", "qwen3-0.6b")
    until(page, lambda: "model=qwen3-0.6b" in page.url)
    page.click("#calc-keep")
    until(page, lambda: "kept=" in page.url)
    page.click("details summary:has-text('config.json')")
    page.fill("#calc-config", json.dumps(TINY))
    until(page, lambda: "config=" in page.url)
    serve(page)
    until(page, lambda: "vLLM" in page.inner_text("#calc-now"))
    page.click("#calc-copy")
    link = page.input_value("#calc-link")
    assert parse_qs(urlsplit(link).fragment)["kept"] == ["model=qwen3-0.6b"]
    compared = page.inner_text("#calc-compare")
    assert "qwen3-0.6b" in compared and "your llama" in compared
    page.goto("about:blank")
    opened(page, link)
    assert page.inner_text("#calc-compare") == compared and page.url == link
    assert page.inner_text("#calc-kept") == wanted(model="qwen3-0.6b")["heading"]
    page.click("#calc-forget")
    assert "kept=" not in page.url and page.is_hidden("#calc-compare")
    page.click("#calc-keep")  # a config of one's own, and the usual state
    page.evaluate("location.hash = 'batch=2&kept='")
    until(page, lambda: page.text_content("#calc-kept") == wanted()["heading"])
    assert page.text_content("#calc-now") == wanted(batch=2)["heading"]
    page.evaluate("location.hash = 'what-the-total-is'")  # a heading is no state
    page.wait_for_timeout(200)
    assert page.is_visible("#calc-compare")


@pytest.mark.parametrize(("mode", "width"), [("light", 390), ("dark", 800), ("light", 1280)])
def test_nothing_is_cut_where_it_serves(page, mode, width):
    page.emulate_media(color_scheme=mode)
    page.set_viewport_size({"width": width, "height": 800})
    serve(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    cut = """() => [...document.querySelectorAll("#calc-form *")].filter(each => {
        const { right, width } = each.getBoundingClientRect();
        return width && right > innerWidth;
    }).map(each => each.outerHTML.slice(0, 80))"""
    assert page.evaluate(cut) == []


@pytest.mark.sample(1)
@pytest.mark.parametrize("language", catalogue.languages())
def test_it_serves_in_the_language_of_the_page(watched, roots, language):  # noqa: F811
    if not (SITE / language / "calculator.html").exists():
        pytest.skip(f"no book in {language}")
    words, page = catalogue.translations(language, "calculator-words"), watched.page
    page.goto("about:blank")
    opened(page, f"{roots['http']}{language}/calculator.html#use=serve&users=60")
    found = wanted(use="serve", users=60)
    for name in ("verdict", "serving", "scale"):
        assert (
            page.text_content(f"#calc-{name}")
            == rendered(found[name], words, language)
            != found[name]
        )
    labels = page.locator(".calc-use label").all_inner_texts()
    assert labels == [words["Training"], words["Inference (serving)"]]
