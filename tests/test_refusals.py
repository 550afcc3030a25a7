"""Every kind of refusal: one line, in the words of a shell, and what is named as answered is."""

import contextlib
import io
import json
import re
import shlex

import pytest
from described import described_alone
from test_nothing_ignored import CONFIGS, FSDP, LORA, OF_ENGINE, TABLE, ZERO2, T

from memlab.cli import main
from memlab.run import fields
from memlab.run.loops import LOOPS

# What Python calls a value, and nobody types: Name(field=...), <object>, tuples, dicts.
OBJECT = re.compile(r"\b[A-Z]\w*\([a-z_]+=|<[\w.]+ object|\('[^']*',|\[\(|\{'|\b\w+=\(")
FIELD = re.compile(r"(?<![\w`'(])(?!r=\d)[a-z]\w*=['\w(]")
CONTEXTS = [f"{T} --loop {loop}" for loop in LOOPS] + [
    *("", f"{T} --phase decode", f"{T} --backend cpu", f"{T} --implementation memlab"),
    *(FSDP, ZERO2, f"{LORA} --lora-base nf4", f"{T} --texts packed", f"{T} --loss liger"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("refusals")
    for name, config in CONFIGS.items():
        (made / f"{name}.json").write_text(json.dumps(config))
    return made


def asked(words):
    """The status and the one line of a question that is refused; its line is judged."""
    out, err = io.StringIO(), io.StringIO()
    with described_alone(), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = main(words)
        except SystemExit as end:
            status = end.code
    line = err.getvalue()
    if status == 2:
        told = shlex.join(words), line
        assert not out.getvalue() and line.count("\n") == 1, told
        assert not OBJECT.search(line) and not FIELD.search(line), told
    return status, line


def without(words, line):
    """The words of a question less those that its refusal names."""
    dropped = shlex.split(line.split("; without ")[1].split(" it is answered")[0])
    left = list(words)
    while dropped:
        flag = dropped.pop(0)
        value = bool(dropped) and dropped[0][:2] != "--"
        at = left.index(flag)
        del left[at : at + 1 + value]
        del dropped[:value]
    return left


@pytest.mark.sample(6)
@pytest.mark.parametrize("context", CONTEXTS)
def test_an_option_where_it_is_not_described(folder, context):
    refused = again = 0
    for _, how in TABLE.values():
        if how.split()[-1].isupper():  # a file of another test
            continue
        words = ["estimate", str(folder / "llama.json"), *shlex.split(f"{context} {how}")]
        status, line = asked(words)
        refused += status == 2
        if "; without " in line and again < 3:
            again += 1
            assert asked(without(words, line))[0] == 0, (words, line)
    assert refused


def test_a_value_that_a_field_cannot_hold(folder):
    bad = {fields.COUNT: ("-1", "0", str(10**12), "x"), fields.NUMBER: ("2", "x")}
    bad |= {fields.WORD: ("mine",), fields.WORDS: ("mine", "a" * 500)}
    for field in fields.TABLE:
        for value in bad.get(field.kind, ()):
            words = ["estimate", str(folder / "llama.json"), "--tokens", "64"]
            status, line = asked([*words, f"--{field.name.replace('_', '-')}={value}"])
            assert status in (0, 2)
            if status == 2 and len(value) < 10:
                assert value in line.replace(",", ""), line


def test_an_engine_that_is_asked_what_it_does_not_take(folder):
    for more in ("--engine sglang", "--kv-dtype fp8", "--tensor-parallel 3", "--precision fp32"):
        for how, what in OF_ENGINE.values():
            words = shlex.split(f"{how} {what} {more}")
            assert asked(["serve", str(folder / "llama.json"), *words])[0] in (0, 1, 2)


@pytest.mark.parametrize(
    ("question", "answered"),
    [
        (f"{T} --eval-batch 4", "without --eval-batch 4"),
        (f"{LORA} --loop trainer --eval-batch 4", "without --eval-batch 4"),
        (f"{FSDP} --precision bf16 --lora-rank 4 --lora-base nf4", "without --lora-base nf4"),
        (f"{T} --no-clip --loop trainer", "without --no-clip"),
        (f"{T} --loop grpo --attention flash_attention_2", "without --attention flash_attention_2"),
    ],
)
def test_the_nearest_question_is_named_and_answered(folder, question, answered):
    words = ["estimate", str(folder / "llama.json"), *question.split()]
    status, line = asked(words)
    assert status == 2 and f"; {answered}" in line, line
    assert asked(without(words, line))[0] == 0


def test_nothing_is_said_where_the_model_is_the_reason(folder):
    _, line = asked(["fit", "nowhere.json", "--on", "H100", "--tokens", "64", "--no-clip"])
    assert "is answered" not in line
