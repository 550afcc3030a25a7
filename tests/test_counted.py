"""What the calculator counts without a table: the whole package's answer, in the page's form."""

import json
import random
import shlex
from pathlib import Path

import peak_compare
import peaks
import pytest
from calculator_states import adapted, looped, sharded, states
from real_steps import deep

from memlab import Model, Run, Sharding
from memlab.base.message import dumps
from memlab.cli import main
from memlab.page import simulated_words, ways_out
from memlab.page.answer import answered
from memlab.page.controls import checked
from memlab.page.peak_files import reader
from memlab.page.question import model_of, recipe_of, run_of
from memlab.page.simulated import answer
from memlab.step import simulate

MANY = deep(5)
FIGURES = ("total", "total_text", "moment", "hills", "fits", "left", "verdict", "heading")
SMALL = {"model": "tinyllama-1.1b", "tokens": 256}
# What no table has, and what the package describes of each: a line of the page's own refusals.
REFUSED = [
    {"data": 8, "zero": 2, "precision": "zero"},
    {"data": 4, "zero": 1, "precision": "fp32", "micro_batches": 2},
    {"data": 3, "zero": 2, "precision": "zero", "optimizer": "lion", "checkpoint": "block"},
    {"tensor": 4},
    {"tensor": 2, "precision": "fp32", "checkpoint": "block", "batch": 3},
    {"pipeline": 4},
    {"pipeline": 2, "micro_batches": 4},
    {"data": 8, "model": "gemma-2-2b", "loop": "sft"},
    {"data": 8, "zero": 3, "attention": "eager"},
    {"data": 2, "zero": 3, "loop": "trainer"},
    {"data": 4, "zero": 3, "loop": "trainer", "precision": "fp32", "param_dtype": "bf16"},
    {"data": 2, "zero": 3, "loop": "trainer", "micro_batches": 4, "checkpoint": "block"},
    {"data": 8, "zero": 3, "precision": "fp32", "param_dtype": "bf16"},
    {"loop": "sft", "precision": "fp32", "trained": "lora"},
    {"loop": "dpo", "attention": "eager", "batch": 2},
    {"model": "gemma-2-2b", "loop": "sft"},
    {"model": "gemma-2-2b", "loop": "grpo", "completion": 16, "batch": 8},
    {"model": "olmo-2-1b", "loop": "dpo", "batch": 2},
    {"model": "phi-4", "loop": "sft", "trained": "lora"},
    {"model": "phi-4", "trained": "qlora"},
    {"trained": "lora", "lora_dropout": 5},
    {"trained": "qlora", "targets": "attention", "rank": 8},
    {"trained": "qlora", "lora_dropout": 10, "targets": "qv", "checkpoint": "block"},
    {"trained": "qlora", "lora_dropout": 5, "loop": "sft"},
    {"model": "olmo-2-1b", "data": 8, "zero": 3},
    {"model": "mixtral-8x7b", "data": 8, "zero": 3},
]
REFUSED = [SMALL | state for state in REFUSED]


@pytest.fixture(scope="module")
def lookup():
    return reader(peaks.kept())


def counted(state, advise=False):
    return json.loads(answer(json.dumps(state), advise))


def figures(told):
    """What both have; a table has a row, too, for states of which SGD has none."""
    rows = [(row["term"], row["bytes"]) for row in told["rows"] if row["bytes"]]
    stacks = {name: [part for part in told["stacks"][name] if part[1]] for name in told["stacks"]}
    return {name: told[name] for name in FIGURES} | {"rows": rows, "stacks": stacks}


def test_where_there_is_a_table_both_say_the_same(lookup):
    """Two ways to one figure: sums of products kept beforehand, and the step simulated now."""
    met, chance = 0, random.Random(peaks.key())
    drawn = [draw(30 * MANY, peaks.key()) for draw in (states, adapted, looped, sharded)]
    asked = [state for some in drawn for state in some]
    for state in chance.sample(asked, len(asked)):
        try:
            told = answered(state, lookup, advise=False)
        except (ValueError, TypeError):
            continue
        if told["peak"]:
            now = counted(state)
            assert figures(now) == figures(json.loads(dumps(told))), state
            met += 1
        if met == 4 * MANY:
            return
    raise AssertionError("too few states are described")


@pytest.mark.sample(13)
@pytest.mark.parametrize("state", REFUSED, ids=str)
def test_what_no_table_has_is_the_simulated_step(lookup, state):
    told = answered(state, lookup)
    assert told["counts"] and not told["peak"]
    now, whole = counted(state), checked(state)
    assert now["peak"] and "counts" not in now
    peak_compare.hold(now, simulate(model_of(whole), recipe_of(whole), run_of(whole)), state)
    assert {row["formula"] for row in now["rows"]} == {simulated_words.TENSOR_BY_TENSOR}


def test_the_shown_command_is_the_answer(capsys):
    alone = [state for state in REFUSED if state.get("data", 1) > 1 and not state.get("zero")]
    for state in alone + random.Random(peaks.key()).sample(REFUSED, 3):
        told = counted(state)
        assert main([*shlex.split(told["command"])[1:], "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["peak"]["bytes"] == told["total"]


def test_trainers_bf16_under_fsdp2_is_that_of_the_package(capsys):
    """bf16=True is a format to gather in there: in the address, the command and the lines."""
    asked = SMALL | {"data": 4, "zero": 3, "loop": "trainer", "precision": "fp32"}
    told, plain = counted(asked | {"param_dtype": "bf16"}), counted(asked)
    run = Run(tokens=256, loop="trainer", devices=Sharding.of(data=4, zero=3, param_dtype="bf16"))
    assert told["total"] == simulate(Model.preset("tinyllama-1.1b"), "fp32", run).peak.bytes
    assert told["total"] != plain["total"]
    assert "--param-dtype bf16" in told["command"] and "param" not in plain["command"]
    assert 'param_dtype="bf16"' in told["script"]
    assert main([*shlex.split(told["command"])[1:], "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["peak"]["bytes"] == told["total"]
    known: dict = {}
    exec(told["script"].replace("print(", "found = ("), known)
    assert known["found"].total() == told["total"]
    passes = counted(asked | {"param_dtype": "bf16", "micro_batches": 2})
    assert "--gradient-sync last" in passes["command"] and passes["peak"]
    assert main([*shlex.split(passes["command"])[1:], "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["peak"]["bytes"] == passes["total"]


@pytest.mark.parametrize("state", [{"data": 1, "zero": 3}, {"data": 4, "zero": 0}])
def test_what_fsdp2_would_gather_in_changes_nothing_without_it(lookup, state):
    for loop in ("plain", "trainer"):
        asked = SMALL | state | {"precision": "fp32", "loop": loop}
        with_it = answered(asked | {"param_dtype": "bf16"}, lookup)
        without = answered(asked, lookup)
        assert with_it["total"] == without["total"] and with_it["command"] == without["command"]


def test_more_cards_keep_the_format_that_they_gather_in():
    asked = {"model": "llama-3-70b", "loop": "trainer", "precision": "fp32", "param_dtype": "bf16"}
    for data in (1, 2):
        state = asked | {"data": data, "zero": 3, "tokens": 512}
        (_, _, sets), *_ = counted(state, advise=True)["over"]
        assert sets["param_dtype"] == ("own" if data == 1 else "bf16")
        again = counted(state | sets)
        assert again["fits"] and again["peak"]


def test_a_pipeline_runs_1f1b_where_there_are_micro_batches_enough():
    shown = [counted(SMALL | {"pipeline": 2, "micro_batches": n})["command"] for n in (1, 2)]
    assert "--schedule gpipe" in shown[0] and "--schedule 1f1b" in shown[1]


def test_what_the_package_does_not_describe_is_said():
    told = counted(SMALL | {"data": 2, "tensor": 2})
    assert list(told) == ["refused"]
    pattern, values = told["refused"]  # a message: its pattern, and what stands in it
    assert pattern == simulated_words.NOT_COUNTED and "tensor 2" in values["why"][1]["devices"]
    for zero in (1, 2):
        told = counted(SMALL | {"data": 2, "zero": zero, "precision": "bf16"})
        pattern, values = told["refused"]
        assert pattern == simulated_words.NOT_COUNTED
        assert values["why"] == ways_out.NO_COPY_OF_WEIGHTS
    assert counted({"batch": 0}).keys() == {"error"}


# A state, and what stands in the message that refuses it: what no step of memlab's is.
BEYOND = [
    {"data": 2, "tensor": 2},
    {"tensor": 2, "loop": "sft"},
    {"pipeline": 2, "model": "gpt2"},
    {"tensor": 2, "optimizer": "lion"},
    {"data": 2, "zero": 2, "precision": "fp32", "loop": "sft"},
    {"data": 2, "zero": 3, "optimizer": "muon"},
    {"model": "gemma-2-2b", "loss": "chunked"},
    {"model": "gemma-2-2b", "attention": "sdpa"},
    {"model": "config", "precision": "bf16", "config": {"head_dim": 12}},
    {"model": "config", "config": {"head_dim": 512, "num_key_value_heads": 1}},
]


def test_what_the_package_refuses_is_a_message(lookup):
    """So that a page in another language says it whole."""
    met = set()
    for state in BEYOND:
        whole = SMALL | state
        if "config" in state:
            whole |= {"config": UNTIED | state["config"]}
        found = [counted(whole)["refused"]]
        while found:  # a message, and those that stand in it
            told = found.pop()
            if isinstance(told, list):
                met.add(told[0])
                found += list(told[1].values())
            else:
                met.add(told)
    assert met >= set(simulated_words.OF_STEPS)


def test_what_is_left_out_is_said_of_this_step():
    left = counted(SMALL | {"data": 8, "zero": 2, "precision": "zero", "optimizer": "lion"})
    assert simulated_words.LEFT_BY_RANKS in left["leaves_out"]


def test_what_the_last_rank_joins_is_of_the_loss():
    """A pipeline joins the logits of all micro-batches after the last backward."""
    state = {"model": "config", "config": UNTIED, "pipeline": 2, "micro_batches": 16}
    whole = checked(state | {"tokens": 4096})
    step = simulate(model_of(whole), recipe_of(whole), run_of(whole))
    told = counted(state | {"tokens": 4096})
    assert step.peak.moment == "merge" and told["moment"] == "loss"
    assert step.peak.bytes == told["total"] == sum(row["bytes"] for row in told["rows"])


UNTIED = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 64,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "num_hidden_layers": 4,
    "vocab_size": 32000,
    "tie_word_embeddings": False,
}


@pytest.mark.parametrize(
    "state",
    [
        {"card": "RTX 4090"},
        {"model": "llama-3-70b"},
        {"model": "llama-3-70b", "data": 8},
        {"model": "qwen3-4b", "card": "L40S"},
        {"model": "llama-3-70b", "data": 8, "zero": 3},
    ],
    ids=str,
)
def test_what_does_not_fit_one_card_is_divided_over_several(lookup, state):
    """As few as fit: each number of cards below it was tried, and is too few."""
    told = answered(state, lookup)
    assert told["over"] and not told["fits"]
    for sentence, line, sets in told["over"]:
        if "trained" in sets:  # the next test
            continue
        after = answered(state | sets, lookup, advise=False)
        assert after["fits"] and after["total_text"] in sentence
        whole = checked(state | sets)
        step = simulate(model_of(whole), recipe_of(whole), run_of(whole))
        assert after["total"] == step.peak.bytes
        assert "fully_shard(model)" in line and line.endswith(str(sets["data"]))
        assert ("gradient_checkpointing_enable" in line) == ("checkpoint" in sets)
        fewer = state | sets | {"data": sets["data"] // 2}
        if fewer["data"] >= max(2, state.get("data", 1)):
            assert not answered(fewer, lookup, advise=False)["fits"]


@pytest.mark.parametrize("state", [{"card": "RTX 4090"}, {"model": "llama-3-70b"}], ids=str)
def test_where_no_change_helps_adapters_may(lookup, state):
    """Adapters are among the page's own controls: LoRA, and QLoRA where it has to be."""
    told = answered(state, lookup)
    assert not told["steps"] and "as long as the same weights are trained" in told["advice"]
    sentence, line, sets = told["over"][-1]
    after = answered(state | sets, lookup, advise=False)
    assert after["fits"] and after["total_text"] in sentence
    whole = checked(state | sets)
    step = simulate(model_of(whole), recipe_of(whole), run_of(whole))
    assert after["total"] == step.peak.bytes and 'target_modules="all-linear"' in line
    assert ("load_in_4bit=True" in line) == (sets["trained"] == "qlora")
    if sets["trained"] == "qlora":
        assert not answered(state | sets | {"trained": "lora"}, lookup, advise=False)["fits"]
    without = {"checkpoint": "none"}
    assert not answered(state | sets | without, lookup, advise=False)["fits"]


@pytest.mark.parametrize(
    "state",
    [
        {"card": "H200"},
        {"card": "RTX 4090", "trained": "lora", "tokens": 100_000},
        {"model": "mixtral-8x7b"},
        {"model": "llama-3-70b", "tensor": 8},
        {"model": "llama-3-70b", "precision": "zero", "data": 8, "zero": 2},
    ],
    ids=str,
)
def test_nothing_is_divided_that_fits_or_has_no_table(lookup, state):
    assert answered(state, lookup)["over"] == []


def test_without_a_table_the_package_knows_how_many_cards(lookup):
    """A family whose steps under FSDP2 are in no table, counted by simulation."""
    told = counted({"model": "olmo-2-7b", "loop": "plain", "card": "RTX 4090"}, advise=True)
    assert told["over"] and Path(peaks.TARGET / "fsdp.olmo2.bf16.json").exists() is False
