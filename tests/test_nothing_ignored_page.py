"""No control of the page is ignored: each changes the answer where it counts, or is refused.

As tests/test_nothing_ignored.py has it of the command line: one table says of each control a state
in which it counts, and a control that is new has to have its place there.
"""

import json

import peaks
import pytest
from calculator_states import _PHI

from memlab.base.quoted import shown
from memlab.page.adapter_tables import USUAL
from memlab.page.answer import outcome
from memlab.page.controls import CHOICES, NUMBERS
from memlab.page.peak_files import reader
from memlab.run.fields import BETWEEN

LORA = {"trained": "lora"}
SERVE = {"use": "serve"}
LLAMA_CPP = SERVE | {"engine": "llama.cpp"}
# Control: the state in which it counts, and another value.
TABLE = {
    "model": ({}, "qwen3-4b"),
    "precision": ({}, "fp32"),
    "optimizer": ({}, "sgd"),
    "optimizer_impl": ({"precision": "fp32", "tokens": 64}, "fused"),
    "attention": ({}, "eager"),
    "checkpoint": ({}, "block"),
    "loss": ({}, "chunked"),
    "card": ({}, "A100 40GB"),
    "zero": ({"data": 4}, 3),
    "param_dtype": ({"data": 4, "zero": 3, "precision": "fp32"}, "bf16"),
    "loop": ({}, "dpo"),
    "teacher": ({"loop": "gkd"}, "llama-3.2-1b"),
    "teacher_weights": ({"loop": "gkd"}, "fp32"),
    "completion": ({"loop": "sft"}, 100),
    "trained": ({}, "lora"),
    "targets": (LORA, USUAL),
    "rank": (LORA, 64),
    "lora_dropout": (LORA, 10),
    "use": ({}, "serve"),
    "engine": (SERVE, "none"),
    "dtype": (SERVE, "fp32"),
    "kv": (SERVE, "fp8"),
    "gguf": (LLAMA_CPP, "Q8_0"),
    "gguf_kv": (LLAMA_CPP, "q8_0"),
    "users": (SERVE, 3),
    "context": (SERVE, 1024),
    "share": (SERVE, 50),
    "cards": (SERVE, 2),
    "loaded": (SERVE, 20000),
    "batch": ({}, 3),
    "tokens": ({}, 512),
    "micro_batches": ({}, 4),
    "gib": ({"card": "other"}, 40),
    "data": ({}, 4),
    "tensor": ({}, 2),
    "pipeline": ({}, 2),
}
SHOWN = ("heading", "picture", "scale", "title", "command", "script", "flags", "sets")


@pytest.fixture(scope="module")
def ask():
    lookup = reader(peaks.kept())

    def asked(state):
        found = outcome(json.dumps(state), lookup, advise=False)
        told = {name: value for name, value in found.items() if name not in SHOWN}
        return json.dumps(told, default=str)

    return asked


def ignored(ask, base=None, drop=None):
    """The controls that leave the answer as it was; the one to drop never arrives."""
    found = []
    for control, (state, value) in TABLE.items():
        if drop not in (None, control):
            continue
        state = (base or {}) | state
        said = state if drop else state | {control: value}
        if ask(said) == ask(state):
            found.append(control)
    return found


def test_every_control_is_in_the_table():
    assert {each[0] for each in (*CHOICES, *NUMBERS)} == set(TABLE)


def test_every_control_counts(ask):
    assert ignored(ask) == []
    assert [name for name in TABLE if ignored(ask, drop=name) != [name]] == []


def test_of_a_type_that_is_not_described_each_counts_or_is_refused(ask):
    """What stays is the same between all steps that are cut, computed or counted in another way."""
    phi = {"model": "config", "config": _PHI, "tokens": 512}
    asked = [
        name for name, (state, _) in TABLE.items() if "error" not in json.loads(ask(phi | state))
    ]
    told = set(ignored(ask, phi)) & set(asked) - {"precision"}  # its config says fp32
    assert told <= set(BETWEEN)
    for name in ("trained", "loop", "micro_batches", "data", "tensor", "pipeline"):
        said = json.loads(ask(phi | {name: TABLE[name][1]}))
        assert "error" in said, name


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (1.5, "“1.5”"),
        (1.0, "“1”"),
        ([0.0, 2, "a"], "“[0, 2, a]”"),
        (float("inf"), "“inf”"),
        ({"a": 1}, "“{...}”"),
        (True, "“True”"),
        (1e20, "“1e+20”"),
    ],
)
def test_a_refusal_has_the_value_in_it(value, words):
    assert shown(value) == words


def test_a_number_that_is_none_stands_in_the_refusal(ask):
    assert "Sequence length, in tokens: \\u201c1.5\\u201d is no" in ask({"tokens": 1.5})
