"""The calculator's button for what no table has: CPython with memlab in it, in a browser."""

import gzip
from urllib.parse import quote

import catalogue
import cpython
import pytest
from test_calculator_page import PAGE, opened, total, until

# The browser and the servers of the other pages' tests are fixtures here too.
from test_pages import SITE, Watched, browser, roots  # noqa: F401

from memlab.base.message import rendered
from memlab.estimate import estimate
from memlab.model import Model
from memlab.page import simulated_words
from memlab.run import Run
from memlab.run.teacher import Teacher
from memlab.sharding import Sharding
from memlab.units import text as sized

MOST = 8_000_000  # bytes, compressed: what the button says that it fetches
PATIENCE = 2400  # turns of 25 ms: a CPython that starts beside other work
ZERO = "#model=tinyllama-1.1b&data=8&zero=2&precision=zero"

pytestmark = [
    pytest.mark.skipif(not (SITE / PAGE).exists(), reason="no book: `make book` builds it"),
    pytest.mark.skipif(not (SITE / cpython.PLACE).exists(), reason="no node package"),
]


def peak(**devices):
    recipe = devices.pop("recipe", "zero")
    run = Run(tokens=4096, devices=Sharding.of(**devices))
    return f"{estimate(Model.preset('tinyllama-1.1b'), recipe, run).total():,}"


def soon(page, true):
    """Wait as long as a CPython needs that starts beside other work."""
    for _ in range(PATIENCE // 400 + 1):
        try:
            return until(page, true)
        except AssertionError:
            continue
    raise AssertionError("nothing was counted in a minute")


def counted(page, wanted):
    soon(page, lambda: total(page) == wanted)


def test_what_no_table_has_is_counted_at_a_press(browser, roots):  # noqa: F811
    with Watched(browser, roots["http"]) as watched:
        page = watched.page
        opened(page, roots["http"] + PAGE)
        assert page.is_hidden("#calc-count")
        assert not [url for url in watched.asked if "count.mjs" in url or "/python/" in url]
        page.goto("about:blank")
        opened(page, roots["http"] + PAGE + ZERO)
        page.wait_for_selector("#calc-count button")
        assert "not known here" in page.inner_text("#calc-verdict")
        assert page.get_attribute("#calc-verdict", "data-fits") == ""  # neither yes nor no
        assert not [url for url in watched.asked if "/python/" in url], "nobody asked for it"
        page.click("#calc-count button")
        counted(page, peak(data=8, zero=2))
        assert page.inner_text("#calc-verdict").startswith("✓ It fits 8 × H100 80GB")
        assert page.is_hidden("#calc-count")
        assert "reduce buckets" in page.inner_text("#calc-legend")
        assert page.locator("#calc-towers .calc-tower-top").count() == 1
        # The next one is counted without another press, and what has a table needs no Python.
        page.fill("#calc-data", "16")
        counted(page, peak(data=16, zero=2))
        page.select_option("#calc-zero", "3")
        page.select_option("#calc-precision", "bf16")
        counted(page, peak(data=16, zero=3, recipe="bf16"))
        page.wait_for_selector("#calc-count", state="hidden")
        assert watched.wrong == []
        fetched = {url.split("/")[-1] for url in watched.asked if "/python/" in url}
        assert fetched == {*cpython.FILES, cpython.ARCHIVE}


def test_what_the_package_refuses_is_said_beside_the_button(browser, roots):  # noqa: F811
    with Watched(browser, roots["http"]) as watched:
        page = watched.page
        opened(page, roots["http"] + PAGE + "#model=tinyllama-1.1b&data=2&tensor=2")
        page.click("#calc-count button")
        for _ in range(PATIENCE // 400 + 1):
            if page.inner_text("#calc-count").startswith("The package"):
                break
            page.wait_for_timeout(10_000)
        assert "tensor 2" in page.inner_text("#calc-count")
        assert not page.is_visible("#calc-count button")
        assert "not known here" in page.inner_text("#calc-verdict")
        page.fill("#calc-data", "1")  # what stands beside it is of one question
        counted(page, peak(tensor=2, recipe=None))
        assert watched.wrong == []


def test_a_python_that_does_not_come_is_said(browser, roots):  # noqa: F811
    with Watched(browser, roots["http"]) as watched:
        page = watched.page
        page.route("**/python_stdlib.zip", lambda route: route.abort())
        opened(page, roots["http"] + PAGE + ZERO)
        page.click("#calc-count button")
        until(page, lambda: "did not start here" in page.inner_text("#calc-count"))
        assert page.is_visible("#calc-count button")
        assert "not known here" in page.inner_text("#calc-verdict")


@pytest.mark.sample(1)
@pytest.mark.parametrize("language", catalogue.languages())
def test_the_button_speaks_the_language(browser, roots, language):  # noqa: F811
    words = catalogue.translations(language, "calculator-words")
    with Watched(browser, roots["http"]) as watched:
        opened(watched.page, roots["http"] + PAGE.replace("en/", f"{language}/") + ZERO)
        watched.page.wait_for_selector("#calc-count button")
        for said in (simulated_words.OFFER, simulated_words.PRICE):
            assert rendered(said, words, language) in watched.page.inner_text("#calc-count")
        assert watched.wrong == []


def test_no_script_of_it_asks_for_a_map():
    for name in cpython.FILES:
        if name.endswith(".mjs"):
            script = (SITE / cpython.PLACE / name).read_text(encoding="utf-8")
            assert "sourceMappingURL" not in script and len(script) > 1000


def test_it_fetches_what_it_says():
    loaded = [SITE / cpython.PLACE / name for name in (*cpython.FILES, cpython.ARCHIVE)]
    sizes = {path.name: len(gzip.compress(path.read_bytes(), 6)) for path in loaded}
    assert MOST / 2 < sum(sizes.values()) <= MOST and "8 MB" in simulated_words.PRICE, sizes


def test_what_was_kept_is_counted_too(browser, roots):  # noqa: F811
    """An address keeps the question alone: what no table has is counted again, at a press."""
    kept = ZERO.removeprefix("#")
    with Watched(browser, roots["http"]) as watched:
        page = watched.page
        opened(page, roots["http"] + PAGE + "#model=tinyllama-1.1b&kept=" + quote(kept, safe=""))
        page.wait_for_selector("#calc-count button")
        assert page.inner_text("#calc-count button") == simulated_words.OFFER_KEPT
        assert "not known here" in page.inner_text("#calc-kept-verdict")
        page.click("#calc-count button")
        soon(page, lambda: page.inner_text("#calc-kept-verdict").startswith("✓"))
        assert sized(int(peak(data=8, zero=2).replace(",", ""))) in page.inner_text(
            "#calc-compared-total"
        )
        assert page.is_hidden("#calc-count") and "kept=" in page.url
        assert watched.wrong == []


def test_a_teacher_is_asked_about_where_there_is_one(browser, roots):  # noqa: F811
    with Watched(browser, roots["http"]) as watched:
        page = watched.page
        opened(page, roots["http"] + PAGE + "#model=llama-3.2-1b&tokens=512")
        assert page.is_hidden("#calc-teacher") and page.is_hidden("#calc-teacher_weights")
        page.select_option("#calc-loop", "gkd")
        page.select_option("#calc-teacher", "qwen3-4b")
        until(page, lambda: "vocabulary of 151,936 tokens" in page.inner_text("#calc-wrong"))
        page.select_option("#calc-teacher", "llama-3-8b")
        page.select_option("#calc-teacher_weights", "bf16")
        page.select_option("#calc-precision", "fp32")
        until(page, lambda: "reference" in page.inner_text("#calc-rows"))
        assert "teacher=llama-3-8b&teacher_weights=bf16" in page.url
        page.click("#calc-count button")
        teacher = Teacher(Model.preset("llama-3-8b"), "bf16")
        run = Run(tokens=512, loop="gkd", teacher=teacher)
        counted(page, f"{estimate(Model.preset('llama-3.2-1b'), 'fp32', run).total():,}")
        assert "--teacher llama-3-8b --teacher-weights bf16" in page.text_content("#calc-command")
        assert watched.wrong == []


def test_over_how_many_cards_a_trainer_fits_is_counted(browser, roots):  # noqa: F811
    with Watched(browser, roots["http"]) as watched:
        page = watched.page
        opened(page, roots["http"] + PAGE + "#model=llama-3-70b&loop=trainer")
        page.wait_for_selector("#calc-count button")
        assert page.inner_text("#calc-count button") == simulated_words.OFFER_CARDS
        assert "FSDP2" not in page.inner_text("#calc-over")
        page.click("#calc-count button")
        soon(page, lambda: "FSDP2" in page.inner_text("#calc-over"))
        said = page.inner_text("#calc-over")
        assert "over 16 GPUs with FSDP2" in said and "torchrun --nproc-per-node 16" in said
        assert page.is_hidden("#calc-count") and watched.wrong == []


def test_adapters_on_several_cards_need_no_button_under_ddp(browser, roots):  # noqa: F811
    with Watched(browser, roots["http"]) as watched:
        page = watched.page
        opened(page, roots["http"] + PAGE + "#model=tinyllama-1.1b&trained=lora&data=8")
        assert page.is_hidden("#calc-count") and "reduce buckets" in page.inner_text("#calc-rows")
        page.select_option("#calc-zero", "3")
        page.wait_for_selector("#calc-count button")
        assert "adapters under FSDP2" in page.inner_text("#calc-verdict")
        assert watched.wrong == []


@pytest.mark.sample(1)
@pytest.mark.parametrize("language", catalogue.languages())
def test_a_refusal_of_the_package_speaks_the_language(browser, roots, language):  # noqa: F811
    words = catalogue.translations(language, "calculator-words")
    with Watched(browser, roots["http"]) as watched:
        page = watched.page
        address = "#model=tinyllama-1.1b&tensor=2&optimizer=lion"
        opened(page, roots["http"] + PAGE.replace("en/", f"{language}/") + address)
        page.click("#calc-count button")
        opening = words[simulated_words.NOT_COUNTED].split("{")[0]
        soon(page, lambda: page.inner_text("#calc-count").startswith(opening))
        assert words["tensor parallelism"] in page.inner_text("#calc-count")
        assert "is not described" not in page.inner_text("#calc-count")
        assert watched.wrong == []
