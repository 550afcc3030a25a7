"""The built page's form in a browser: a framework's defaults, and the arguments of its library."""

import json
import re

import pytest
from test_calculator_page import PAGE, opened, settled, total, until
from test_pages import SITE, Watched, browser, roots  # noqa: F401  fixtures

from memlab import Run
from memlab.cli import main
from memlab.devices import device
from memlab.page.answer_rows import SIGNS
from memlab.page.arguments import ARGUMENTS, OF_ENGINES, arguments_of
from memlab.page.controls import checked, first
from memlab.page.own_values import own_values
from memlab.run.loops import HEADED
from memlab.verdict import room_for

ENGINE = SITE / "en" / "_static" / "calculator" / "micropython.wasm"
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


def defaults(page):
    """What the form calls the default of each control that has one of a framework or a model."""
    shown = page.locator("#calc-form option[value=own]").evaluate_all(
        "all => all.map(one => [one.parentElement.name, one.textContent])"
    )
    return {name: text for name, text in shown if name != "param_dtype"}


def arguments(page, control):
    return page.locator(f"#calc-{control}-arguments code").all_text_contents()


@pytest.mark.parametrize("loop", HEADED)  # a teacher's steps are in no table
def test_a_frameworks_defaults_are_shown_and_the_verdict_is_the_shells(page, loop, capsys):
    before = total(page)
    plain = defaults(page)
    assert plain == own_values(checked({})) and plain["checkpoint"] == "default: off"
    page.select_option("#calc-loop", loop)
    settled(page, before)
    shown = defaults(page)
    assert shown == own_values(checked({"loop": loop}))
    assert re.fullmatch(r"default of \w+Trainer: on", shown["checkpoint"])
    assert page.input_value("#calc-checkpoint") == "own"
    assert main(f"estimate llama-3-8b --tokens 4096 --loop {loop} --json".split()) == 0
    peak = json.loads(capsys.readouterr().out)["peak"]["bytes"]
    assert total(page) == f"{peak:,}"
    word = room_for(Run(tokens=4096, loop=loop), device("H100 80GB")).verdict(peak).word
    assert page.get_attribute("#calc-verdict", "data-fits") == SIGNS[word]
    page.select_option("#calc-loop", "plain")
    until(page, lambda: defaults(page) == plain)


def test_a_question_without_an_answer_shows_no_default(page):
    page.select_option("#calc-loop", "sft")
    until(page, lambda: "SFTTrainer" in defaults(page)["checkpoint"])
    page.select_option("#calc-loss", "chunked")  # which no framework has
    until(page, lambda: page.inner_text("#calc-wrong") != "")
    assert set(defaults(page).values()) == {"default"}


def test_each_control_is_described_by_its_arguments(page):
    """In the accessibility tree, as a screen reader meets it; they follow the framework."""
    nodes = page.context.new_cdp_session(page).send("Accessibility.getFullAXTree")["nodes"]
    told = {
        node["name"]["value"]: node.get("description", {}).get("value", "")
        for node in nodes
        if node.get("role", {}).get("value") in ("combobox", "spinbutton")
    }
    assert told["Batch size per GPU"] == "batch_size"
    assert told["Gradient checkpointing"] == "gradient_checkpointing_enable"
    page.select_option("#calc-loop", "sft")
    for control in set(ARGUMENTS) - set(OF_ENGINES):
        assert arguments(page, control) == list(arguments_of(control, "sft", "vllm", 0)), control


def test_an_engines_options_follow_the_engine_and_its_fraction(page):
    page.eval_on_selector("[name=use][value=serve]", "one => one.click()")
    assert arguments(page, "share") == ["--gpu-memory-utilization 0.92"]
    page.fill("#calc-share", "88")
    page.select_option("#calc-engine", "sglang")
    until(page, lambda: arguments(page, "share") == ["--mem-fraction-static 0.88"])
    assert "share=88" in page.url and first()["share"] == 92  # as addresses have it
    assert arguments(page, "context") == ["--context-length"]
    page.select_option("#calc-engine", "none")
    until(page, lambda: arguments(page, "dtype") == ["dtype", "quantization_config"])
    assert arguments(page, "share") == []


def test_nothing_of_the_form_is_wider_than_a_phone(page):
    page.set_viewport_size({"width": 390, "height": 844})
    try:
        page.select_option("#calc-loop", "distillation")
        until(page, lambda: "Distillation" in defaults(page)["precision"])
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        wide = page.locator(".calc-arguments").evaluate_all(
            "all => all.filter(one => one.scrollWidth > one.clientWidth).length"
        )
        assert wide == 0
    finally:
        page.set_viewport_size({"width": 1280, "height": 900})
