"""What is asked after the verdict, and a model that is found, in a real browser."""

import pytest
from test_calculator_page import PAGE, opened, until

# The browser and the servers of the other pages' tests are fixtures here too.
from test_pages import SITE, Watched, browser, roots  # noqa: F401

from memlab.devices import devices
from memlab.model.presets import PRESETS

ENGINE = SITE / "en" / "_static" / "calculator" / "micropython.wasm"
LINE, MORE, GPUS = "#calc-asked-line", "#calc-asked-more", "#calc-asked-gpus"

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
    watched.page.set_viewport_size({"width": 1280, "height": 900})
    opened(watched.page, roots["http"] + PAGE)
    return watched.page


def ask(page, what):
    page.click(f"#calc-asked [data-what={what}]:visible")
    until(page, lambda: page.inner_text(LINE) not in ("", "Working it out …"))
    return page.inner_text(LINE)


def serve(page):
    page.eval_on_selector("[name=use][value=serve]", "one => one.click()")
    until(page, lambda: "use=serve" in page.url)


def test_the_largest_batch_is_shown_used_and_dropped_with_the_question(page):
    page.select_option("#calc-card", "H200")
    until(page, lambda: "card=H200" in page.url)
    assert ask(page, "batch") == "Largest batch on H200: 2. Its peak is 105.9 GiB of 139.9 GiB."
    command = page.inner_text(f"{MORE} code")
    assert command == 'memlab fit llama-3-8b --on "H200" --tokens 4096'
    page.click(f"{MORE} button")
    until(page, lambda: "batch=2" in page.url)
    assert page.input_value("#calc-batch") == "2"
    assert page.evaluate("document.activeElement.id") == "calc-verdict"
    assert not page.is_visible(LINE) and not page.is_visible(MORE)
    pressed = page.locator("#calc-asked [aria-pressed=true]")
    assert pressed.count() == 0


def test_gpus_are_listed_once_each_the_chosen_one_is_marked_and_another_can_be_chosen(page):
    assert ask(page, "gpus") == "12 of 61 GPUs fit it, 3 are tight."
    rows = page.locator(f"{GPUS} tbody tr")
    assert rows.count() == len(devices())
    assert page.inner_text(f"{GPUS} [aria-current] th") == "H100 80GB (the chosen one)"
    assert {row.get_attribute("data-fits") for row in rows.all()} == {"yes", "tight", "no"}
    page.click(f"{GPUS} button:text-is('B200')")
    until(page, lambda: "card=B200" in page.url)
    assert page.input_value("#calc-card") == "B200"
    assert page.get_attribute("#calc-verdict", "data-fits") == "yes" and not page.is_visible(GPUS)


def test_serving_has_questions_of_its_own(page):
    serve(page)
    shown = page.locator("#calc-asked [data-what]:visible").evaluate_all(
        "all => all.map(one => one.dataset.what)"
    )
    assert shown == ["users", "context", "gpus"]
    assert ask(page, "users") == "Conversations of 8,192 tokens at once on H100 80GB: 55."
    assert "55" in page.inner_text("#calc-verdict")
    assert "8,192 tokens" in ask(page, "context")
    page.select_option("#calc-engine", "llama.cpp")
    until(page, lambda: "engine=llama.cpp" in page.url)
    page.select_option("#calc-card", "Apple 16GB")
    until(page, lambda: "Metal recommends" in page.inner_text("#calc-scale"))
    assert ask(page, "users").startswith("Conversations of 8,192 tokens at once on Apple 16GB: ")
    assert "--engine llama.cpp" in page.text_content("#calc-command")


def test_a_question_without_a_table_says_so(page):
    page.fill("#calc-tensor", "2")
    until(page, lambda: "tensor=2" in page.url)
    assert ask(page, "batch").startswith("The peak of this step is not known to this page")


def test_the_list_has_families_and_sizes_and_a_part_of_a_name_narrows_it(page):
    assert page.locator("#calc-model optgroup").count() > 15
    assert page.inner_text("#calc-model option:checked").strip() == "llama-3-8b · 8.03B"
    page.fill("#calc-find", "qwen3-8")
    until(page, lambda: page.inner_text("#calc-found") == "1 of 73 models")
    page.press("#calc-find", "Enter")
    until(page, lambda: "model=qwen3-8b" in page.url)
    assert page.input_value("#calc-model") == "qwen3-8b"
    page.fill("#calc-find", "")
    names = page.locator("#calc-model option").evaluate_all("all => all.map(one => one.value)")
    assert sorted(names) == sorted([*PRESETS, "config"])


def test_a_part_of_a_name_that_one_model_has_chooses_it_without_a_key(page):
    page.fill("#calc-find", "qwen3-")
    until(page, lambda: "of 73 models" in page.inner_text("#calc-found"))
    page.fill("#calc-find", "qwen3-8")
    until(page, lambda: "model=qwen3-8b" in page.url)
    assert page.input_value("#calc-model") == "qwen3-8b"
    page.fill("#calc-find", "gemma-2")  # several: none is chosen
    until(page, lambda: "of 73 models" in page.inner_text("#calc-found"))
    page.wait_for_timeout(1_000)
    assert "model=qwen3-8b" in page.url


def test_a_size_and_a_name_of_the_hub_are_answered_as_the_shell_does(page):
    page.fill("#calc-find", "7B")
    until(page, lambda: "llama-2-7b (6.74B)" in page.inner_text("#calc-found"))
    assert page.input_value("#calc-model") == "llama-3-8b"  # a size alone chooses nothing
    page.fill("#calc-find", "https://huggingface.co/Qwen/Qwen3-8B")
    until(page, lambda: "model=qwen3-8b" in page.url)
    assert page.inner_text("#calc-found").endswith("the preset qwen3-8b")
    page.fill("#calc-find", "somebody/Something-9B")
    until(page, lambda: page.locator("#calc-found a").count() == 1)
    address = "https://huggingface.co/somebody/Something-9B/blob/main/config.json"
    assert page.get_attribute("#calc-found a", "href") == address
    page.evaluate("document.querySelector('#calc-config').closest('details').open = true")
    page.fill("#calc-config", "meta-llama/Llama-3.2-1B")
    until(page, lambda: "model=llama-3.2-1b" in page.url)
    assert "the preset llama-3.2-1b" in page.inner_text("#calc-read")


def test_an_address_chooses_a_model_that_the_list_does_not_show_now(page):
    page.fill("#calc-find", "gemma")
    until(page, lambda: "of 73 models" in page.inner_text("#calc-found"))
    page.evaluate("location.hash = 'model=gpt2&tokens=512'")
    until(page, lambda: page.input_value("#calc-model") == "gpt2")
    assert page.inner_text("#calc-wrong") == "" and page.input_value("#calc-find") == ""


def test_what_is_kept_is_found_under_the_verdict_and_shown_in_two_columns(page):
    box = page.locator("#calc-keep").bounding_box()
    assert box["y"] < page.locator("#calc-form").bounding_box()["y"]
    page.click("#calc-keep")
    page.select_option("#calc-model", "qwen3-8b")
    until(page, lambda: "model=qwen3-8b" in page.url)
    tops = page.locator(".calc-pair > p").evaluate_all(
        "all => all.map(one => one.getBoundingClientRect().top)"
    )
    assert tops[0] == tops[1]
    page.set_viewport_size({"width": 390, "height": 844})
    tops = page.locator(".calc-pair > p").evaluate_all(
        "all => all.map(one => one.getBoundingClientRect().top)"
    )
    assert tops[0] < tops[1]


@pytest.mark.parametrize("width", [390, 1280])
def test_no_answer_makes_the_page_wider(page, width):
    page.set_viewport_size({"width": width, "height": 844})
    for what in ("batch", "gpus"):
        ask(page, what)
        assert page.evaluate("document.documentElement.scrollWidth") == width
    page.fill("#calc-find", "someone/a-name-that-is-rather-long-and-in-no-list-of-any-page-9B")
    until(page, lambda: page.locator("#calc-found a").count() == 1)
    assert page.evaluate("document.documentElement.scrollWidth") == width
