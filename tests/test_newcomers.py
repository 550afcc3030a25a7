"""Ten questions of newcomers, asked of the built page by clicks alone: the answer is that of the
shell, after a few clicks.

A click is one control: a choice in a list, a place on a slider, a button, a file. Nothing is typed.
Each question has the command that somebody would type for it, which is not that of the page.
"""

import json
import time

import cpython
import pytest
from test_calculator_page import ENGINE_THERE, PAGE, opened, total, until
from test_count_page import soon
from test_pages import SITE, Watched, browser, roots  # noqa: F401  fixtures
from test_text_part import GEMMA

from memlab.cli import main
from memlab.devices import device, devices
from memlab.page.answer_rows import SIGNS
from memlab.run import Run
from memlab.sharding import Sharding
from memlab.verdict import FITS, room_for

pytestmark = [
    pytest.mark.skipif(not (SITE / PAGE).exists(), reason="no book: `make book` builds it"),
    ENGINE_THERE,
]
LINE = "#calc-asked-line"
ADAPTERS = "--lora-rank 16 --lora-targets q,k,v,out,gate,up,down"


class Hand:
    """What a mouse does on the page, counted."""

    def __init__(self, page):
        self.page, self.clicks = page, 0

    def choose(self, name, value):
        self.page.select_option(f"#calc-{name}", value)

    def slide(self, name, value):
        slider = self.page.locator(f"input[type=range][data-for={name}]")
        values = json.loads(slider.get_attribute("data-values"))
        slider.scroll_into_view_if_needed()
        width, thumb = slider.bounding_box()["width"], 16
        at = thumb / 2 + (width - thumb) * values.index(value) / (len(values) - 1)
        slider.click(position={"x": at, "y": slider.bounding_box()["height"] / 2})
        assert self.page.input_value(f"#calc-{name}") == str(value)

    def infer(self):
        self.page.click(".calc-use label:has([value=serve])")

    def press(self, where):
        self.page.wait_for_selector("#calc-advice:not([inert])", state="attached")
        self.page.click(f"{where} button:visible")

    def ask(self, what):
        self.page.click(f"#calc-asked [data-what={what}]:visible")

    def open(self, summary):
        self.page.click(f"summary:text-is('{summary}')")

    def file(self, path):
        with self.page.expect_file_chooser() as chooser:
            self.page.click("#calc-file")
        chooser.value.set_files(path)

    def do(self, action, *what):
        before = self.page.url
        getattr(self, action)(*what)
        self.clicks += 1
        if action in ("choose", "slide", "infer"):
            until(self.page, lambda: self.page.url != before or self.refused())

    def refused(self):
        return bool(self.page.inner_text("#calc-wrong"))


@pytest.fixture(scope="module")
def watched(browser, roots):  # noqa: F811
    with Watched(browser, roots["http"]) as one:
        yield one
        assert one.wrong == []


@pytest.fixture
def hand(watched, roots):  # noqa: F811
    """The page anew, in the one window of this file."""
    watched.page.goto("about:blank")
    watched.page.set_viewport_size({"width": 1280, "height": 900})
    opened(watched.page, roots["http"] + PAGE)
    return Hand(watched.page)


@pytest.fixture
def config(tmp_path):
    """That of gemma-3-4b-it, which also sees pictures."""
    path = tmp_path / "config.json"
    path.write_text(json.dumps(GEMMA), encoding="utf-8")
    return path


def shell(capsys, words):
    capsys.readouterr()
    assert main([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def peak(told):
    return f"{told['peak']['bytes']:,}"


# A question: the clicks of it, and the shell's command; what is compared is the peak to the byte.
STEPS = {
    "Does full fine-tuning of Qwen3-8B fit on an H100, with 4,096 tokens?": (
        [("choose", "model", "qwen3-8b")],
        "estimate qwen3-8b --tokens 4096",
    ),
    "And with what the page proposes?": (
        [("choose", "model", "qwen3-8b"), ("press", "#calc-remedy")],
        "estimate qwen3-8b --tokens 4096 --optimizer bnb_adamw8bit",
    ),
    "Does the model of my config.json, which sees pictures, fit on an RTX 4090?": (
        [
            ("open", "Paste a config.json or adapter_config.json"),
            ("file", "CONFIG"),
            ("choose", "card", "RTX 4090"),
        ],
        "estimate CONFIG --tokens 4096",
    ),
    "Does Qwen3-32B under FSDP2 fit on eight H100, if need be with checkpointing?": (
        [
            ("choose", "model", "qwen3-32b"),
            ("slide", "data", 8),
            ("choose", "zero", "3"),
            ("press", "#calc-remedy"),
        ],
        "estimate qwen3-32b --tokens 4096 --checkpoint block --ranks 8 --zero 3",
    ),
    "Does TRL's GRPO of Qwen3-4B fit on an H100, 8 completions of 1,024 tokens at once?": (
        [
            ("choose", "model", "qwen3-4b"),
            ("choose", "loop", "grpo"),
            ("slide", "completion", 1024),
            ("slide", "batch", 8),
        ],
        "estimate qwen3-4b --tokens 4096 --batch 8 --loop grpo --completion 1024",
    ),
    "Does Llama-3.1-8B under DeepSpeed's ZeRO 2 fit on two H100?": (
        [
            ("choose", "model", "llama-3.1-8b"),
            ("slide", "data", 2),
            ("choose", "zero", "2"),
            ("press", "#calc-remedy"),
            ("press", "#calc-count"),
        ],
        "estimate llama-3.1-8b --tokens 4096 --recipe zero --ranks 2 --zero 2",
    ),
}
FEW = 5  # clicks


@pytest.mark.parametrize("question", STEPS)
def test_does_it_fit(hand, config, capsys, question):
    clicks, command = STEPS[question]
    if ("press", "#calc-count") in clicks and not (SITE / cpython.PLACE).exists():
        pytest.skip("no node package")
    began = time.perf_counter()
    for action, *what in clicks:
        hand.do(action, *[config if each == "CONFIG" else each for each in what])
    told = shell(capsys, [str(config) if each == "CONFIG" else each for each in command.split()])
    soon(hand.page, lambda: total(hand.page) == peak(told))
    print(f"{hand.clicks} clicks, {time.perf_counter() - began:.1f} s")
    words = command.split()
    ranks = int(words[words.index("--ranks") + 1]) if "--ranks" in words else 1
    run, card = (
        Run(tokens=4096, devices=Sharding.of(data=ranks)),
        hand.page.input_value("#calc-card"),
    )
    word = room_for(run, device(card)).verdict(told["peak"]["bytes"]).word
    assert hand.page.get_attribute("#calc-verdict", "data-fits") == SIGNS[word]
    assert hand.clicks <= FEW and not hand.refused()


# The same of how much there is room for; what is compared is the number that the command gives.
SIZES = {
    "What batch does QLoRA of Llama-3-8B in SFTTrainer allow on an RTX 4090?": (
        [
            ("choose", "loop", "sft"),
            ("choose", "trained", "qlora"),
            ("choose", "card", "RTX 4090"),
            ("ask", "batch"),
        ],
        f"fit llama-3-8b --on RTX_4090 --tokens 4096 --loop sft {ADAPTERS} --lora-base nf4",
        ("value", "Largest batch on RTX 4090: {count}. "),
    ),
    "How many users can Llama-3-70B in AWQ have on two RTX 4090, with 8,192 tokens each?": (
        [
            ("infer",),
            ("choose", "model", "llama-3-70b"),
            ("choose", "dtype", "awq"),
            ("choose", "card", "RTX 4090"),
            ("slide", "cards", 2),
            ("ask", "users"),
        ],
        "serve llama-3-70b --on RTX_4090 --max-model-len 8192 --quantization awq "
        "--tensor-parallel 2",
        ("sequences", "Conversations of 8,192 tokens at once on 2 × RTX 4090: {count}."),
    ),
    "How many users can Qwen3-8B have on an L40S, weights and KV cache in FP8?": (
        [
            ("infer",),
            ("choose", "model", "qwen3-8b"),
            ("choose", "dtype", "fp8"),
            ("choose", "kv", "fp8"),
            ("choose", "card", "L40S"),
            ("ask", "users"),
        ],
        "serve qwen3-8b --on L40S --quantization fp8 --kv-dtype fp8 --max-model-len 8192",
        ("sequences", "Conversations of 8,192 tokens at once on L40S: {count}."),
    ),
    "How long a text can llama.cpp have on a Mac of 16 GB, with Llama-3.1-8B?": (
        [
            ("choose", "card", "Apple 16GB"),  # refused: there is no CUDA
            ("press", "#calc-wrong"),
            ("choose", "model", "llama-3.1-8b"),
            ("ask", "context"),
        ],
        "serve llama-3.1-8b --engine llama.cpp --on Apple_16GB --max-model-len 8192",
        ("longest", "Longest context of one conversation on Apple 16GB: {count} tokens."),
    ),
}


@pytest.mark.parametrize("question", SIZES)
def test_how_much_is_there_room_for(hand, capsys, question):
    clicks, command, (field, line) = SIZES[question]
    began = time.perf_counter()
    for action in clicks:
        hand.do(*action)
    soon(hand.page, lambda: hand.page.inner_text(LINE) not in ("", "Working it out …"))
    print(f"{hand.clicks} clicks, {time.perf_counter() - began:.1f} s")
    words = [each.replace("_", " ") if "_" in each else each for each in command.split()]
    told = shell(capsys, words)
    assert line.format(count=f"{told[field]:,}") in hand.page.inner_text(LINE) + " "
    assert hand.clicks <= FEW + 1 and not hand.refused()


def test_which_gpus_fit_lora_in_sfttrainer(hand, capsys):
    began = time.perf_counter()
    hand.do("choose", "model", "llama-3.1-8b")
    hand.do("choose", "loop", "sft")
    hand.do("choose", "trained", "lora")
    hand.do("slide", "tokens", 2048)
    hand.do("ask", "gpus")
    soon(hand.page, lambda: hand.page.locator("#calc-asked-gpus tbody tr").count() > 0)
    print(f"{hand.clicks} clicks, {time.perf_counter() - began:.1f} s")
    command = f"estimate llama-3.1-8b --tokens 2048 --loop sft {ADAPTERS}"
    size = shell(capsys, command.split())["peak"]["bytes"]
    rows = hand.page.locator("#calc-asked-gpus tbody tr[data-fits=yes] th").all_inner_texts()
    fit = {card.name for card in devices() if room_for(Run(), card).verdict(size).word == FITS}
    assert {row.removesuffix(" (the chosen one)") for row in rows} == fit
    assert 0 < len(fit) < len(devices()) and hand.clicks == 5
