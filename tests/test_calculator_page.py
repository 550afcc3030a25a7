"""The calculator's page in a real browser: what it shows, what it refuses, what it loads."""

import gzip
import json
import re
from urllib.parse import quote
from xml.etree import ElementTree

import calculator
import catalogue
import peaks
import pytest
from calculator_states import MARKUP

# The browser and the servers of the other pages' tests are fixtures here too.
from test_pages import OTHERS, ROOT, SITE, Watched, browser, roots  # noqa: F401

from memlab.adapters import Lora
from memlab.base.message import rendered
from memlab.estimate import estimate
from memlab.families import config_types
from memlab.model import Model
from memlab.page.answer import ORDER, answered
from memlab.page.controls import CHOICES, NUMBERS
from memlab.page.peak_files import reader
from memlab.page.table_peak import HILLS
from memlab.run import Run
from memlab.sharding import Sharding
from memlab.units import text as sized

ASSETS = SITE / "en" / "_static" / "calculator"
PAGE = "en/calculator.html"
SVG = "{http://www.w3.org/2000/svg}"
READY = "html[data-calculator=ready]"
LARGEST_ENGINE = 315_000  # bytes, compressed as a server compresses
TINY = {
    "model_type": "llama",
    "hidden_size": 2048,
    "intermediate_size": 8192,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 64,
    "num_hidden_layers": 16,
    "vocab_size": 128256,
    "tie_word_embeddings": True,
    "max_position_embeddings": 131072,
}

ENGINE_THERE = pytest.mark.skipif(
    not (ASSETS / "micropython.wasm").exists(), reason="no node package"
)
pytestmark = [
    pytest.mark.skipif(not (SITE / PAGE).exists(), reason="no book: `make book` builds it"),
    ENGINE_THERE,
]


@pytest.fixture(scope="module")
def window(browser, roots):  # noqa: F811
    """One window for most tests: in a new one the browser compiles the engine anew."""
    with Watched(browser, roots["http"]) as watched:
        yield watched


@pytest.fixture
def page(window, roots):  # noqa: F811
    """The page anew, in a window that is as a new one."""
    page = window.page
    page.goto("about:blank")
    page.set_viewport_size({"width": 1280, "height": 720})
    page.emulate_media(media="screen", color_scheme="light")
    window.wrong.clear()
    opened(page, window.root + PAGE)
    page.evaluate("localStorage.clear()")
    yield page
    assert window.wrong == []
    page.evaluate("localStorage.clear()")


def opened(page, address):
    page.goto(address)
    page.wait_for_selector(READY, state="attached", timeout=30_000)


def total(page):
    return page.inner_text("#calc-total-bytes")


def until(page, true):
    """Wait for what is true of the page; the policy forbids the browser to do it by itself."""
    for _ in range(400):
        if true():
            return
        page.wait_for_timeout(25)
    raise AssertionError("nothing happened in ten seconds")


def settled(page, before):
    until(page, lambda: total(page) != before)
    return total(page)


def test_the_example_stands_before_any_script_and_the_engine_agrees(browser, roots):  # noqa: F811
    shown = ("#calc-verdict", "#calc-rows", "#calc-title", "#calc-left-out", "#calc-hills")
    with Watched(browser, roots["http"], java_script_enabled=False) as watched:
        watched.page.goto(roots["http"] + PAGE)
        before = [watched.page.inner_text(name) for name in shown]
        assert "GiB" in before[0] and "weights" in before[1]
    with Watched(browser, roots["http"]) as watched:
        opened(watched.page, roots["http"] + PAGE)
        assert [watched.page.inner_text(name) for name in shown] == before
        assert watched.wrong == []


def test_a_slider_moved_by_a_key_changes_number_ledger_and_address(page):
    before = total(page)
    page.focus("input[data-for=batch]")
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    settled(page, before)
    assert page.input_value("#calc-batch") == "4"
    assert "batch=4" in page.url
    assert page.get_attribute("input[data-for=batch]", "aria-valuetext") == "4"


def test_a_shared_address_shows_the_same_after_a_reload(page, roots):  # noqa: F811
    page.select_option("#calc-model", "qwen3-0.6b")
    page.select_option("#calc-card", "RTX 4090")
    page.fill("#calc-tokens", "1000")
    until(page, lambda: "tokens=1000" in page.url)
    shown = page.inner_text("#calc-rows")
    address = page.url
    page.goto("about:blank")
    opened(page, address)
    assert page.inner_text("#calc-rows") == shown
    assert page.input_value("#calc-model") == "qwen3-0.6b"


def test_a_pasted_config_is_read_and_shared(page):
    before = total(page)
    page.click("details summary:has-text('config.json')")
    page.fill("#calc-config", json.dumps(TINY | {"_name_or_path": MARKUP}))
    changed = settled(page, before)
    assert MARKUP in page.inner_text("#calc-title")
    assert page.locator("#calc-result img").count() == 0
    address = page.url
    page.goto("about:blank")
    opened(page, address)
    assert total(page) == changed


def test_a_pasted_adapter_config_sets_the_controls_of_lora(page, roots):  # noqa: F811
    files = []
    page.on("request", lambda request: files.append(request.url.rsplit("/", 1)[-1]))
    before = total(page)
    page.click("details summary:has-text('adapter_config.json')")
    said = {"peft_type": "LORA", "r": 32, "target_modules": ["v_proj", "q_proj"], "bias": "none"}
    said |= {"base_model_name_or_path": "Qwen/Qwen3-4B", "use_dora": True}
    page.fill("#calc-config", json.dumps(said))
    until(page, lambda: page.inner_text("#calc-wrong") != "")
    assert "“use_dora”" in page.inner_text("#calc-wrong")
    assert "qwen3-4b --tokens 4096 --adapter" in page.inner_text("#calc-wrong")
    assert page.inner_text("#calc-read") == "" and total(page) == before
    assert page.input_value("#calc-model") == "llama-3-8b" and page.url == roots["http"] + PAGE
    page.fill("#calc-config", json.dumps(said | {"use_dora": False}))
    changed = settled(page, before)
    run = Run(tokens=4096, lora=Lora(32, ("q", "v")))
    assert changed == f"{estimate(Model.preset('qwen3-4b'), 'bf16', run).total():,}"
    assert "qwen3-4b + LoRA r=32" in page.inner_text("#calc-title")
    assert "r=32, target_modules" in page.inner_text("#calc-read")
    assert page.inner_text("#calc-wrong") == ""
    assert "later.json" not in files  # the first answer has fetched it
    address = page.url
    page.goto("about:blank")
    opened(page, address)
    assert total(page) == changed


def test_a_name_in_chinese_stays_one(browser, roots):  # noqa: F811
    with Watched(browser, roots["http"]) as watched:
        page = watched.page
        opened(page, roots["http"] + "zh-TW/calculator.html")
        page.click("details summary:has-text('config.json')")
        config = TINY | {"_name_or_path": "臺灣模型-1B", "層數": 16}
        page.fill("#calc-config", json.dumps(config))
        until(page, lambda: "臺灣模型-1B" in page.inner_text("#calc-title"))
        assert "層數" in page.inner_text("#calc-left-out")
        assert "??" not in page.inner_text("article")
        assert watched.wrong == []


def test_what_zero_cannot_divide_is_said_where_it_is_asked(page):
    assert page.is_hidden("#calc-divides")
    before = total(page)
    page.select_option("#calc-zero", "3")
    until(page, lambda: page.is_visible("#calc-divides"))
    assert page.inner_text("#calc-divides").startswith("ZeRO 3 shards nothing here")
    assert total(page) == before
    page.fill("#calc-data", "8")
    until(page, lambda: page.is_hidden("#calc-divides"))
    assert "fits" in page.inner_text("#calc-verdict") and total(page) != before


def test_adapters_are_asked_about_where_they_are_trained(page):
    files = []
    page.on("request", lambda request: files.append(request.url.rsplit("/", 1)[-1]))
    assert not page.is_visible("#calc-rank") and not page.is_visible("#calc-targets")
    before = total(page)
    page.select_option("#calc-trained", "qlora")
    changed = settled(page, before)
    assert page.is_visible("#calc-rank") and page.is_visible("#calc-targets")
    told = estimate(
        Model.preset("llama-3-8b"),
        None,
        Run(tokens=4096, lora=Lora(16, ("q", "k", "v", "out", "gate", "up", "down"), "nf4")),
    )
    assert changed == f"{told.total():,}"
    assert "+ QLoRA r=16" in page.inner_text("#calc-title")
    page.select_option("#calc-targets", "qv")
    page.fill("#calc-rank", "64")
    until(page, lambda: "QLoRA r=64" in page.inner_text("#calc-title"))
    tables = [name for name in files if name.endswith(".json")]
    assert tables == ["llama.fp32.nf4-all.json", "llama.fp32.nf4-qv.json"]
    assert "trained=qlora" in page.url and "rank=64" in page.url and "targets=qv" in page.url


def test_the_program_that_trains_is_asked_for_by_its_name(page, roots):  # noqa: F811
    """Of a model that fits: the advice for one that does not asks for more tables."""
    before = total(page)
    page.select_option("#calc-model", "qwen3-0.6b")
    before = settled(page, before)
    files = []
    page.on("request", lambda request: files.append(request.url.rsplit("/", 1)[-1]))
    names = page.locator("#calc-loop option").all_inner_texts()
    assert {"transformers: Trainer", "TRL: SFTTrainer"} < set(names)
    assert not page.is_visible("#calc-completion")
    page.select_option("#calc-loop", "sft")
    changed = settled(page, before)
    assert page.is_visible("#calc-completion")
    told = estimate(Model.preset("qwen3-0.6b"), None, Run(tokens=4096, loop="sft"))
    assert changed == f"{told.total():,}" and "SFTTrainer" in page.inner_text("#calc-title")
    page.select_option("#calc-checkpoint", "none")  # which shows what the loss takes
    changed = settled(page, changed)
    page.fill("#calc-completion", "512")
    changed = settled(page, changed)
    run = Run(tokens=4096, loop="sft", checkpoint="none", completion=512)
    assert changed == f"{estimate(Model.preset('qwen3-0.6b'), None, run).total():,}"
    assert [name for name in files if name.endswith(".json")] == ["sft.qwen3.autocast.json"]
    assert "loop=sft" in page.url and "completion=512" in page.url
    address = page.url
    page.goto("about:blank")
    opened(page, address)
    assert total(page) == changed and page.input_value("#calc-loop") == "sft"
    page.select_option("#calc-loss", "chunked")
    until(page, lambda: page.inner_text("#calc-wrong") != "")
    assert "calc-stale" in page.get_attribute("#calc-result", "class")
    assert page.get_attribute("#calc-verdict", "data-fits") == ""


def test_eight_cards_under_fsdp_are_one_address(page):
    before = total(page)
    page.fill("#calc-data", "8")
    changed = settled(page, before)
    page.select_option("#calc-zero", "3")
    until(page, lambda: "gathered weights" in page.inner_text("#calc-rows"))
    told = estimate(
        Model.preset("llama-3-8b"), "bf16", Run(tokens=4096, devices=Sharding(data=8, zero=3))
    )
    assert total(page) == f"{told.total():,}" != changed
    assert "--ranks 8 --zero 3" in page.text_content("#calc-command")
    address = page.url
    assert "data=8" in address and "zero=3" in address
    page.goto("about:blank")
    opened(page, address)
    assert total(page) == f"{told.total():,}"
    page.select_option("#calc-zero", "2")
    until(
        page,
        lambda: (
            "DeepSpeed updates an fp32 master copy of the weights, and this precision has none"
            in page.inner_text("#calc-verdict")
        ),
    )


def test_a_dropped_file_is_read(page):
    before = total(page)
    page.evaluate(
        """text => {
            const data = new DataTransfer();
            data.items.add(new File([text], "config.json", { type: "application/json" }));
            const drop = new DragEvent("drop", { dataTransfer: data, bubbles: true });
            document.getElementById("calc-form").dispatchEvent(drop);
        }""",
        json.dumps(TINY),
    )
    settled(page, before)
    assert page.input_value("#calc-model") == "config"


def test_what_does_not_fit_says_what_would(page):
    page.select_option("#calc-model", "qwen3-0.6b")
    page.select_option("#calc-card", "RTX 4060 Laptop")
    page.wait_for_selector("#calc-changes li")
    assert "does not fit" in page.inner_text("#calc-verdict")
    assert "GiB" in page.inner_text("#calc-changes li:last-child")


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("model", "verdict"),
    [("llama-3-8b", "≈ Tight on RTX A6000"), ("qwen3-4b", "✓ It fits RTX A6000")],
)
def test_a_change_makes_itself(page, model, verdict):
    asked = {"model": model, "card": "RTX A6000"}
    page.select_option("#calc-model", model)
    page.select_option("#calc-card", "RTX A6000")
    wanted = answered(asked, reader(peaks.kept()))
    codes = page.locator("#calc-changes code")
    until(page, lambda: codes.all_text_contents() == wanted["flags"])
    assert len(wanted["changes"]) > 1
    assert (model == "llama-3-8b") == ("gradient_checkpointing" in wanted["flags"][-1])
    before = total(page)
    page.click("#calc-changes li:last-child .calc-apply")
    settled(page, before)
    assert page.inner_text("#calc-total") == wanted["changes"][-1][2]
    assert page.inner_text("#calc-verdict").startswith(verdict)
    for name, value in wanted["sets"][-1].items():
        assert page.input_value(f"#calc-{name}") == value and f"{name}={value}" in page.url


def test_the_address_is_handed_over(page):
    page.select_option("#calc-checkpoint", "block")
    until(page, lambda: "checkpoint=block" in page.url)
    assert page.is_hidden("#calc-link")
    page.click("#calc-copy")
    until(page, lambda: page.is_visible("#calc-link"))
    assert page.input_value("#calc-link") == page.url


def test_a_refused_question_has_no_verdict(page):
    assert page.inner_text("#calc-verdict").startswith("≈")
    page.select_option("#calc-model", "gpt2")  # of 1,024 positions
    until(page, lambda: page.inner_text("#calc-wrong") != "")
    assert "4,096 tokens" in page.inner_text("#calc-wrong")
    assert "fits" not in page.inner_text("#calc-verdict")
    assert page.get_attribute("#calc-verdict", "data-fits") == ""
    assert page.locator(".calc-stale").count() == 2
    command = page.locator("details:has(#calc-command)")  # would answer the question before
    assert not command.is_visible()
    page.fill("#calc-tokens", "1024")
    until(page, lambda: page.inner_text("#calc-verdict").startswith("✓"))
    assert page.locator(".calc-stale").count() == 0 and command.is_visible()


@pytest.mark.parametrize("text", ["no JSON", '{"peft_type": "IA3", "target_modules": ["k_proj"]}'])
def test_a_refused_text_has_no_verdict(page, text):
    """The answer to the question before stands there no more as if it were that of the text."""
    assert page.inner_text("#calc-verdict").startswith("≈")
    page.click("#calc-form summary")
    page.fill("#calc-config", text)
    until(page, lambda: page.inner_text("#calc-wrong").startswith("The config: "))
    assert "fits" not in page.inner_text("#calc-verdict")
    assert page.get_attribute("#calc-verdict", "data-fits") == ""
    assert page.locator(".calc-stale").count() == 2
    page.fill("#calc-config", "")
    until(page, lambda: page.inner_text("#calc-verdict").startswith("≈"))
    assert page.inner_text("#calc-wrong") == "" and page.locator(".calc-stale").count() == 0


FOUR_BITS = {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}


@pytest.mark.parametrize(
    ("how", "button", "trained"),
    [
        (
            {"quant_method": "fp8", "fmt": "e4m3"},
            "Compute it without its quantization_config",
            "all",
        ),
        (FOUR_BITS, "Compute QLoRA on its NF4 base model", "qlora"),
    ],
)
def test_a_quantized_config_is_refused_with_a_way_on(page, roots, how, button, trained):  # noqa: F811
    """Of some models no other config is published than that of the quantized one."""
    page.click("#calc-form summary")
    page.fill("#calc-config", json.dumps(TINY | {"quantization_config": how}))
    page.wait_for_selector("#calc-wrong .calc-apply")
    assert "quantization_config='...' is not described" in page.inner_text("#calc-wrong")
    assert page.get_attribute("#calc-verdict", "data-fits") == ""
    assert page.inner_text("#calc-wrong .calc-apply") == button
    page.click("#calc-wrong .calc-apply")
    until(page, lambda: page.inner_text("#calc-verdict").startswith("✓"))
    assert page.inner_text("#calc-wrong") == "" and "quantization_config" not in page.url
    assert page.input_value("#calc-trained") == trained
    before = total(page)
    page.reload()
    page.wait_for_selector(READY, state="attached", timeout=30_000)
    assert total(page) == before
    # With the config as it was the question has no answer either where an address asks it.
    page.goto("about:blank")
    words = quote(json.dumps(TINY | {"quantization_config": how}))
    opened(page, f"{roots['http']}{PAGE}#config={words}")
    assert page.inner_text("#calc-wrong .calc-apply") == button


def test_whether_it_fits_is_said_before_what_would_help(page):
    """A search over all changes takes up to a hundred times as long as the answer itself."""
    page.evaluate(
        """() => {
            window.heard = [];
            const note = (name) => () => heard.push([name, performance.now()]);
            for (const id of ["calc-verdict", "calc-changes-head"])
                new MutationObserver(note(id)).observe(
                    document.getElementById(id), { childList: true });
        }"""
    )
    page.select_option("#calc-model", "llama-3.1-405b")
    page.select_option("#calc-card", "RTX 3060")
    page.wait_for_selector("#calc-advice:not([inert]) #calc-changes-head:not(:empty)")
    heard = page.evaluate("heard")
    last = dict(heard)
    assert last["calc-verdict"] + 100 < last["calc-changes-head"], heard
    assert "does not fit RTX 3060" in page.inner_text("#calc-verdict")


def test_a_card_of_any_size(page):
    assert page.is_hidden("#calc-gib")
    page.select_option("#calc-card", "other")
    page.fill("#calc-gib", "12")
    until(page, lambda: "your GPU of 12 GiB" in page.inner_text("#calc-verdict"))
    assert "does not fit" in page.inner_text("#calc-verdict")
    page.fill("#calc-gib", "96")
    until(page, lambda: "your GPU of 96 GiB" in page.inner_text("#calc-verdict"))
    assert page.inner_text("#calc-verdict").startswith("✓")


def test_the_hills_are_drawn_and_the_highest_is_marked(page):
    hills = page.locator("#calc-towers g")
    assert hills.evaluate_all("all => all.map(hill => hill.dataset.hill)") == list(HILLS)
    assert page.locator("#calc-towers .calc-tower-top").count() == 1
    found = answered({}, reader(peaks.kept()))
    tops = {name: size for name, size, _ in found["hills"]}
    highest = page.get_attribute("#calc-towers .calc-tower-top", "data-hill")
    assert highest == max(tops, key=lambda name: tops[name])
    parts = """all => all.map(hill => [...hill.children].map(
        part => [part.dataset.term, Number(part.getAttribute("height"))]))"""
    drawn = dict(zip(HILLS, hills.evaluate_all(parts), strict=True))
    for name, stack in found["stacks"].items():
        assert [term for term, _ in drawn[name]] == [term for term, _ in stack]
        for (_, height), (_, size) in zip(drawn[name], stack, strict=True):
            assert height == pytest.approx(285 * size / found["limit"], abs=0.01)
    sizes = page.locator("#calc-tops li").all_inner_texts()
    assert [text.split() for text in sizes] == [
        [name, *next(size for n, _, size in found["hills"] if n == name).split()] for name in HILLS
    ]


def taken(page, tmp_path):
    """The file that the button hands over."""
    with page.expect_download() as download:
        page.click("#calc-picture")
    path = tmp_path / download.value.suggested_filename
    download.value.save_as(path)
    return path


WITHIN = """() => {
    const { width, height } = document.documentElement.viewBox.baseVal;
    return [...document.querySelectorAll("text, rect, line")].filter(each => {
        const { left, right, top, bottom } = each.getBoundingClientRect();
        return left < 0 || right > width || top < 0 || bottom > height;
    }).map(each => each.outerHTML);
}"""
APART = """() => {
    const all = [...document.querySelectorAll("text")].map(each => each.getBoundingClientRect());
    return all.filter((a, i) => all.some((b, j) => i < j && a.left < b.right - 1 &&
        b.left < a.right - 1 && a.top < b.bottom - 8 && b.top < a.bottom - 8)).length;
}"""


@pytest.mark.sample(1)
@pytest.mark.parametrize("language", ["en", *sorted({name.split("/")[0] for name in OTHERS})])
def test_the_picture_is_a_file_of_its_own(browser, roots, language, tmp_path):  # noqa: F811
    with Watched(browser, roots["http"], color_scheme="dark") as watched:
        page = watched.page
        opened(page, f"{roots['http']}{language}/calculator.html")
        page.select_option("#calc-model", "qwen3-0.6b")
        page.select_option("#calc-card", "RTX 4060 Laptop")
        until(page, lambda: "qwen3-0.6b" in page.inner_text("#calc-title"))
        until(page, lambda: "RTX 4060" in page.inner_text("#calc-verdict"))
        heights = "all => all.map(each => each.getAttribute('height'))"
        drawn = page.locator("#calc-towers rect").evaluate_all(heights)
        parts = ("#calc-title", "#calc-verdict", "#calc-scale", "#calc-tops li", "#calc-legend li")
        said = [text for part in parts for text in page.locator(part).all_text_contents()]
        heading = page.evaluate("document.querySelector('h1').firstChild.textContent")
        assert not [url for url in watched.asked if "picture.mjs" in url], "nobody asked for it"
        path = taken(page, tmp_path)
        assert [url for url in watched.asked if "picture.mjs" in url]
        assert path.name == "memlab-qwen3-0.6b.svg" and path.stat().st_size < 12_000
        text = path.read_text(encoding="utf-8")
        picture = ElementTree.fromstring(text)
        ground = picture.find(f"{SVG}rect")
        assert (ground.get("width"), ground.get("fill")) == (picture.get("width"), "#fff")
        group = picture.find(f"{SVG}g")
        assert [part.get("height") for part in group.iter(f"{SVG}rect")] == drawn
        inside = "".join("".join(each.itertext()) for each in picture.iter(f"{SVG}text"))
        for wanted in (heading, *said):
            assert re.sub(r"\s", "", wanted) in re.sub(r"\s", "", inside), wanted
        outside = {name for each in picture.iter() for name in each.attrib}
        assert not outside & {"class", "style", "href"} and "url(" not in text
        page.goto(path.as_uri())
        assert page.evaluate(WITHIN) == [] and page.evaluate(APART) == 0
        assert [line for line in watched.wrong if "leaves the site: file:" not in line] == []


def test_there_is_no_picture_without_hills(page):
    assert page.is_visible("#calc-picture")
    page.select_option("#calc-model", "gpt2")  # refused: of 1,024 positions
    until(page, lambda: page.is_hidden("#calc-picture"))
    page.fill("#calc-tokens", "512")
    until(page, lambda: page.is_visible("#calc-picture"))
    page.fill("#calc-tensor", "2")  # what stays, and no step
    until(page, lambda: page.is_hidden("#calc-picture"))


def test_two_answers_stand_side_by_side(page):
    assert page.is_hidden("#calc-compare")
    page.click("#calc-keep")
    assert page.is_visible("#calc-compare")
    page.select_option("#calc-optimizer", "sgd")
    until(page, lambda: "optimizer=sgd" in page.url)
    page.select_option("#calc-checkpoint", "block")
    until(page, lambda: "checkpoint=block" in page.url)
    lookup = reader(peaks.kept())
    now = {"optimizer": "sgd", "checkpoint": "block"}
    both = [{row["term"]: row["bytes"] for row in answered(s, lookup)["rows"]} for s in ({}, now)]
    terms = [term for term in ORDER if term in both[0] or term in both[1]]
    figures = [[each.get(term, 0) for each in both] for term in terms]
    figures.append([sum(each.values()) for each in both])
    wanted = []
    for name, (before, after) in zip([*terms, "total"], figures, strict=True):
        sign = "+" if after > before else "−"
        apart = sign + sized(abs(after - before)) if after != before else "0"
        wanted.append([name, *(sized(size) if size else "0" for size in (before, after)), apart])
    rows = page.locator("#calc-compare :is(tbody, tfoot) tr")
    shown = rows.evaluate_all("all => all.map(row => [...row.children].map(c => c.textContent))")
    assert shown == wanted and ["optimizer", "29.92 GiB", "0", "−29.92 GiB"] in shown
    assert page.text_content("#calc-kept") == answered({}, lookup)["heading"]
    assert page.text_content("#calc-now-verdict") == answered(now, lookup)["verdict"]
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.click("#calc-forget")
    assert page.is_hidden("#calc-compare")


def test_it_says_how_many_the_card_serves(page):
    assert "55.66 GiB" in page.inner_text("#calc-serving")  # as memlab serve
    page.fill("#calc-tokens", "8192")
    until(
        page,
        lambda: "55 concurrent conversations of 8,192 tokens" in page.inner_text("#calc-serving"),
    )
    page.select_option("#calc-model", "llama-3-70b")
    until(page, lambda: "vLLM does not start" in page.inner_text("#calc-serving"))


def test_the_language_of_the_page_may_change_and_the_question_stays(page, roots):  # noqa: F811
    page.select_option("#calc-card", "T4")
    until(page, lambda: "card=T4" in page.url)
    page.click(".memlab-languages summary")
    page.click(".memlab-languages a[hreflang='zh-TW']")
    page.wait_for_selector(READY, state="attached", timeout=30_000)
    assert "/zh-TW/" in page.url and page.input_value("#calc-card") == "T4"


def test_a_term_tells_its_formula_by_mouse_and_by_key(page):
    page.hover("button[data-term=optimizer]")
    assert "adamw" in page.inner_text("#calc-formula")
    page.focus("button[data-term=weights]")
    assert "8,030,261,248" in page.inner_text("#calc-formula")


HOSTILE_TEXTS = ["{", "[]", MARKUP, '{"model_type": "' + MARKUP + '"}', "[" * 50_000]
HOSTILE_TEXTS += ['{"__proto__": {"x": 1}}', json.dumps(TINY | {"hidden_size": -1})]
HOSTILE_TEXTS += [json.dumps(TINY | {"vocab_size": 10**40}), '{"a": NaN}', "x" * 10_000_000]


def test_hostile_texts_are_answered_by_one_line(page):
    page.evaluate("() => { window.alert = () => { document.title = 'alerted'; }; }")
    shown = page.text_content("#calc-rows")
    for text in HOSTILE_TEXTS:
        page.evaluate(
            """text => {
                document.getElementById("calc-wrong").textContent = "";
                const box = document.getElementById("calc-config");
                box.value = text;
                box.dispatchEvent(new Event("input", { bubbles: true }));
            }""",
            text,
        )
        until(page, lambda: page.inner_text("#calc-wrong") != "")
        said = page.inner_text("#calc-wrong")
        own = said.replace(", ".join(config_types()), "")  # one says what it would know
        assert "\n" not in said and len(own) < 300, text[:40]
        assert page.locator(".calc img").count() == 0
    assert page.title() != "alerted" and page.evaluate("({}).x === undefined")
    assert page.text_content("#calc-rows") == shown and page.is_hidden("#calc-rows")


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    "words",
    [
        f"model={quote(MARKUP)}",
        "batch=-1",
        "batch=1e9",
        "tokens=99999999999999999999",
        "__proto__=1",
        f"config={quote(MARKUP)}",
        f"config={quote('[' * 1000)}",
        "constructor=x",
        "zero=9",
        "card=%F0%9F%92%A3",
        "x=" + "y" * 200_000,
    ],
    ids=lambda words: words[:24],
)
def test_a_hostile_address_is_answered_by_one_line(window, words):
    page = window.page
    page.goto("about:blank")
    window.wrong.clear()
    opened(page, f"{window.root}{PAGE}#{words}")
    said = page.inner_text("#calc-wrong")
    assert said and "\n" not in said and len(said) < 300
    assert page.locator(".calc img").count() == 0
    assert "GiB" in page.inner_text("#calc-verdict")
    assert window.wrong == []


def test_from_a_folder_the_page_says_what_it_needs(browser, roots):  # noqa: F811
    with Watched(browser, roots["file"]) as watched:
        watched.page.goto(roots["file"] + PAGE)
        assert "make serve" in watched.page.inner_text("#calc-note")
        assert watched.page.is_disabled("#calc-model")
        assert "GiB" in watched.page.inner_text("#calc-verdict")
        assert watched.wrong == []


def test_the_engine_is_small():
    loaded = [*ASSETS.glob("*.mjs"), ASSETS / "micropython.wasm", ASSETS / "python.json"]
    for name in ("picture", "count", "cpython", "field"):  # fetched by buttons, and in chapters
        loaded.remove(ASSETS / f"{name}.mjs")
    sizes = {path.name: len(gzip.compress(path.read_bytes(), 9)) for path in loaded}
    assert sum(sizes.values()) <= LARGEST_ENGINE, sizes
    for path in (ASSETS / "peaks").glob("*.json"):
        assert len(gzip.compress(path.read_bytes(), 9)) < 50_000, path.name


@pytest.mark.sample(4)
@pytest.mark.parametrize("mode", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 820, 1440])
def test_nothing_overflows(browser, roots, mode, width):  # noqa: F811
    with Watched(
        browser, roots["http"], color_scheme=mode, viewport={"width": width, "height": 800}
    ) as watched:
        opened(watched.page, roots["http"] + PAGE)
        assert watched.page.evaluate("document.documentElement.scrollWidth") <= width
        bar = watched.page.locator("#calc-bar").bounding_box()
        assert bar["x"] >= 0 and bar["x"] + bar["width"] <= width
        labels = """() => [...document.querySelectorAll(".calc :is(input, select, textarea)")]
            .filter(each => !each.labels?.length && !each.getAttribute("aria-label")).length"""
        assert watched.page.evaluate(labels) == 0
        assert watched.wrong == []


@pytest.mark.sample(1)
@pytest.mark.parametrize("language", sorted({name.split("/")[0] for name in OTHERS}))
def test_form_and_answer_speak_the_language_of_the_page(browser, roots, language):  # noqa: F811
    words = catalogue.translations(language, "calculator-words")
    words = {text: words[text] for text in calculator.words()}  # whole, and in their order
    lookup = reader(peaks.kept())
    with Watched(browser, roots["http"]) as watched:
        page = watched.page

        def shows(state):
            found = answered(state, lookup)
            steps = [rendered(text, words, language) for text in found["steps"]]
            page.wait_for_selector("#calc-advice:not([inert])")  # a moment after the verdict
            until(page, lambda: page.text_content("#calc-changes-head"))
            assert page.locator("#calc-changes li span").all_text_contents() == steps
            for name in ("verdict", "title", "scale", "hills", "serving", "changes-head"):
                key = {"title": "heading", "hills": "heights", "changes-head": "advice"}
                wanted = rendered(found[key.get(name, name)], words, language)
                assert page.text_content(f"#calc-{name}") == wanted
            terms = [rendered(row["term"], words, language) for row in found["rows"]]
            assert page.locator("#calc-rows button").all_text_contents() == terms
            left = page.locator("#calc-left-out li").all_text_contents()
            assert left == [rendered(text, words, language) for text in found["leaves_out"]]
            picture = page.get_attribute("#calc-bar", "aria-label")
            assert picture == rendered(found["picture"], words, language)
            assert rendered(found["verdict"], words, language) != found["verdict"]

        opened(page, f"{roots['http']}{language}/calculator.html")
        shows({})
        labels = {name: label for name, label, *_ in [*CHOICES, *NUMBERS]}
        assert page.text_content(".calc-use legend") == words[labels.pop("use")]
        for name, label in labels.items():
            assert page.text_content(f"label[for=calc-{name}]") == words[label]
        before = total(page)
        page.focus("input[data-for=batch]")
        page.keyboard.press("ArrowRight")
        settled(page, before)
        shows({"batch": 2})
        page.hover("button[data-term=weights]")
        assert page.inner_text("#calc-formula").startswith(f"{words['weights']}: P · b")
        page.select_option("#calc-model", "qwen3-0.6b")
        page.select_option("#calc-card", "RTX 4060 Laptop")
        until(page, lambda: "RTX 4060" in page.inner_text("#calc-verdict"))
        until(page, lambda: "qwen3-0.6b" in page.inner_text("#calc-title"))
        shows({"batch": 2, "model": "qwen3-0.6b", "card": "RTX 4060 Laptop"})
        page.fill("#calc-tensor", "3")
        until(page, lambda: page.inner_text("#calc-wrong") != "")
        key_heads = rendered("key/value heads", words)
        assert key_heads in page.inner_text("#calc-wrong")
        assert watched.wrong == []


@pytest.mark.sample(1)
@pytest.mark.parametrize("language", sorted({name.split("/")[0] for name in OTHERS}))
def test_the_example_speaks_it_before_any_script(browser, roots, language):  # noqa: F811
    words = catalogue.translations(language, "calculator-words")
    verdict = answered({}, reader(peaks.kept()))["verdict"]
    with Watched(browser, roots["file"]) as watched:
        watched.page.goto(f"{roots['file']}{language}/calculator.html")
        assert watched.page.text_content("#calc-verdict") == rendered(verdict, words, language)
        assert "make serve" in watched.page.inner_text("#calc-note")
        assert "Opened" not in watched.page.inner_text("#calc-note")
        assert watched.wrong == []


@pytest.mark.sample(3)
@pytest.mark.parametrize("width", [360, 412, 768, 769, 1440])
def test_the_verdict_stays_below_the_bar_of_the_page(page, width):
    page.set_viewport_size({"width": width, "height": 900})
    page.evaluate("scrollTo(0, 900)")
    at = "selector => { const box = document.querySelector(selector).getBoundingClientRect(); "
    top = page.evaluate(at + "return box.top; }", "#calc-verdict")
    assert top == page.evaluate(at + "return box.bottom; }", ".bd-header-article") > 0
    below = page.evaluate(at + "return box.bottom; }", "#calc-verdict")
    assert page.evaluate(at + "return box.top; }", "#calc-bar") == pytest.approx(below, abs=1)


def test_a_phone_on_its_side_is_not_half_covered(page):
    page.set_viewport_size({"width": 844, "height": 390})
    page.evaluate("scrollTo(0, 900)")
    covered = page.evaluate("document.querySelector('.calc-top').getBoundingClientRect().bottom")
    assert covered < 60, "the verdict stays over a form of 390 px"


@pytest.mark.sample(1)
@pytest.mark.parametrize("language", catalogue.languages())
def test_what_a_config_lacks_is_said_in_the_language(browser, roots, language):  # noqa: F811
    words = catalogue.translations(language, "calculator-words")
    wrong = "D={width} is not a multiple of N={heads}, which {family} asks for"
    quantized = TINY | {"quantization_config": {"quant_method": "bitsandbytes"}}
    with Watched(browser, roots["http"]) as watched:
        page = watched.page
        opened(page, roots["http"] + PAGE.replace("en/", f"{language}/"))
        page.evaluate("document.querySelector('#calc-config').closest('details').open = true")
        for config, english in (
            ({"model_type": "gemma2"}, "the {family} config has no {key}"),
            (TINY | {"head_dim": None, "hidden_size": 2047}, wrong),
            (quantized, "take the config of the model that was quantized"),
        ):
            page.fill("#calc-config", json.dumps(config))
            part = max(re.split(r"\{\w+\}", words[english]), key=len).strip()
            until(page, lambda part=part: part in page.inner_text("#calc-wrong"))
        page.select_option("#calc-model", "llama-3-8b")
        page.fill("#calc-tokens", "")
        part = words["{label}: a whole number from {least} to {most} is needed"].split("{least}")[0]
        part = part.split("{label}")[1].strip()
        until(page, lambda: part in page.inner_text("#calc-wrong"))
        assert "None" not in page.inner_text("#calc-wrong") and watched.wrong == []
