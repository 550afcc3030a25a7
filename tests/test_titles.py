"""Titles of ledgers are messages: any of them is said in each language, whatever run it is of."""

import re

import pytest

from memlab import Model, Recipe, Run
from memlab.adapters import Lora
from memlab.base import messages, titles
from memlab.base.message import PLACE, Message
from memlab.base.messages import catalogue
from memlab.estimate import estimate, told
from memlab.ledger import Ledger
from memlab.sharding import Sharding

LANGUAGES = [code for code in messages.languages() if code != messages.ENGLISH]
WORD = re.compile(r"[a-z]{2,}")
RUNS = (
    Run(tokens=512),
    Run(tokens=512, batch=4, micro_batches=2),
    Run(tokens=512, loop="dpo"),
    Run(tokens=512, phase="prefill"),
    Run(tokens=512, phase="decode", batch=3),
    Run(tokens=512, devices=Sharding(data=8, zero=3)),
    Run(tokens=512, lora=Lora(8, ("q", "v"))),
)


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_pattern_has_its_translation(language):
    words = catalogue(language)
    for pattern in titles.patterns():
        assert pattern in words, pattern
        assert sorted(PLACE.findall(pattern)) == sorted(PLACE.findall(words[pattern]))


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("run", RUNS, ids=str)
def test_no_english_is_left_of_a_run(language, run, monkeypatch):
    monkeypatch.setattr(messages, "_chosen", [language])
    what = told(run)
    assert isinstance(what, Message)
    words = catalogue(language)
    english, other = set(), set(WORD.findall(f"{run.implementation} {run.devices}"))
    other |= set(WORD.findall(run.adapters.told())) if run.adapters else set()  # code names them so
    for pattern in titles.patterns():
        english |= set(WORD.findall(PLACE.sub("", pattern)))
        other |= set(WORD.findall(PLACE.sub("", words[pattern])))
    for moment in titles.MOMENTS:
        for op in ("", "mul.Tensor"):
            title = titles.in_moment(titles.dotted("m", "bf16", what), moment, op)
            assert title == f"m · bf16 · {what}: the peak, in {moment}" + (f" ({op})" if op else "")
            left = set(WORD.findall(messages.say(title))) & (english - other)
            assert not left, messages.say(title)


def test_the_phase_of_a_caller_stays_as_it_is():
    assert titles.in_moment("x", "warm-up", "add") == "x: the peak, in warm-up (add)"


def test_a_title_of_two_ledgers_is_said_in_parts(monkeypatch):
    one = Ledger.of("derived", {"weights": 1}, title=Message(titles.AT_PEAK, what="a"))
    both = one + one
    assert both.title == "a: the peak + a: the peak"
    monkeypatch.setattr(messages, "_chosen", ["pt-BR"])
    assert messages.say(both.title) == "a: o pico + a: o pico"
    assert str(both).splitlines()[0] == "a: o pico + a: o pico"


def test_a_title_names_stage_and_rank(monkeypatch):
    run = Run(devices=Sharding.of(data=2, pipeline=2, schedule="gpipe"))
    title = estimate(Model.preset("llama-3-8b"), Recipe(), run).title
    assert title.startswith("llama-3-8b · ") and "stage " in title and "one rank of 4" in title
    monkeypatch.setattr(messages, "_chosen", ["pt-BR"])
    assert "estágio" in messages.say(title) and "um rank de 4" in messages.say(title)
