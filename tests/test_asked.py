"""What is asked after the verdict: the page answers as the shell does, in both of its engines."""

import json
import shlex

import pytest
from test_calculator import folder, lookup, there  # noqa: F401  fixtures

from memlab.base.message import parts
from memlab.cli import main
from memlab.devices import devices
from memlab.engines.apple import macs
from memlab.page import asked_words as say
from memlab.page.answer import answered as verdict_of
from memlab.page.asked import answered
from memlab.page.asked_parts import BATCH, CONTEXT, GPUS, SERVED, TOKENS, TRAINED, USERS
from memlab.page.serve_controls import SERVE, START
from memlab.page.turns import A_TURN, CHEAP, DEAR, Known, Later

# Steps whose search a replay of the allocator leaves as it is.
TRAINING = [
    ({"card": "H200", "tokens": 1024}, 10),
    ({"card": "H200", "tokens": 1024, "checkpoint": "block"}, 44),
    ({"card": "H200", "tokens": 2048, "loop": "sft"}, 10),
    ({"card": "RTX 4090", "tokens": 1024, "model": "qwen3-0.6b"}, 4),
    ({"card": "A100 40GB", "tokens": 1024, "model": "gpt2", "checkpoint": "block"}, 53),
    ({"card": "A100 40GB", "tokens": 1000, "model": "gemma-2b"}, 3),
    ({"card": "RTX 4090", "tokens": 1024, "model": "llama-3.2-1b", "precision": "autocast"}, None),
    ({"card": "RTX 4090", "tokens": 1024}, 0),
    ({"card": "L40S", "tokens": 512, "trained": "lora", "rank": 8}, None),
    ({"card": "H100 80GB", "tokens": 700, "optimizer": "lion"}, None),
    ({"card": "H200", "tokens": 1024, "loss": "chunked"}, None),
    ({"card": "other", "gib": 48, "tokens": 1024, "trained": "qlora"}, None),
    ({"card": "B200", "tokens": 1024, "data": 8, "zero": 3, "precision": "bf16"}, None),
    ({"card": "RTX 3090", "tokens": 1024, "model": "qwen2.5-0.5b", "micro_batches": 4}, None),
]
SERVING = [
    {},
    {"card": "RTX 4090", "context": 4096},
    {"model": "qwen3-8b", "kv": "fp8", "context": 40960},
    {"model": "llama-3-70b", "dtype": "awq", "cards": 2, "context": 8000},
    {"model": "gpt-oss-20b", "card": "RTX 4090"},
    {"model": "gemma-3-1b", "card": "T4", "context": 30000},
    {"engine": "sglang", "share": 85, "model": "llama-3.1-8b", "users": 3, "context": 100000},
    {"card": "other", "gib": 12, "context": 100},
    {"engine": "llama.cpp", "card": "RTX 4090", "users": 5},
    {
        "engine": "llama.cpp",
        "card": "RTX 3060",
        "gguf": "Q8_0",
        "gguf_kv": "q8_0",
        "model": "qwen3-4b",
    },
]


def shell(capsys, command):
    capsys.readouterr()
    status = main([*shlex.split(command)[1:], "--json"])
    return status, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(("state", "value"), TRAINING)
def test_the_largest_batch_is_that_of_the_command_beside_it(state, value, lookup, capsys):  # noqa: F811
    found = answered(state, lookup, BATCH)
    _, told = shell(capsys, found["command"])
    assert found["value"] == told["value"]
    assert value is None or told["value"] == value
    assert found["sets"] == ({"batch": told["value"]} if told["value"] else {})


@pytest.mark.parametrize(("state", "_"), TRAINING[:12])
def test_the_longest_sequence_is_that_of_the_command_beside_it(state, _, lookup, capsys):  # noqa: F811
    found = answered(state | {"batch": 2}, lookup, TOKENS)
    _, told = shell(capsys, found["command"])
    assert found["value"] == told["value"]
    assert (found["then"] == say.POSITIONS_END) == (told["ended_by"] == "positions")


def test_where_the_replay_decides_the_command_says_less_and_the_page_says_so(lookup, capsys):  # noqa: F811
    state = {"model": "llama-3.2-1b", "card": "A100 40GB", "tokens": 1024, "checkpoint": "block"}
    found = answered(state, lookup, BATCH)
    _, told = shell(capsys, found["command"])
    assert (found["value"], told["value"]) == (17, 15)
    assert "also replays the allocator" in str(found["replayed"])


def test_a_batch_more_would_not_fit(lookup):  # noqa: F811
    state = {"card": "H200", "tokens": 1024}
    most = answered(state, lookup, BATCH)["value"]
    now = verdict_of(state | {"batch": most}, lookup, advise=False)
    more = verdict_of(state | {"batch": most + 1}, lookup, advise=False)
    assert (now["state"], more["state"]) == ("yes", "tight")


def test_gpus_have_the_verdicts_that_the_page_has_of_each(lookup):  # noqa: F811
    for state in (
        {"tokens": 1024},
        {"use": SERVE, "users": 40},
        {"use": SERVE, "engine": "none", "users": 8},
    ):
        rows = answered(state, lookup, GPUS)["rows"]
        assert sorted(row[0] for row in rows) == sorted(card.name for card in devices())
        limits = {card.name: card.limit for card in devices()}
        assert [limits[row[0]] for row in rows] == sorted(limits.values())
        assert [row[0] for row in rows if row[5]] == ["H100 80GB"]
        for name, _, sign, *_ in rows:
            alone = verdict_of(state | {"card": name}, lookup, advise=False)
            if alone["state"]:
                fewer = state.get("engine") is None and state.get("use") == SERVE
                assert sign == alone["state"] or (
                    fewer and (sign, alone["state"]) == ("tight", "no")
                )
        assert {row[2] for row in rows} == {"yes", "tight", "no"}


@pytest.mark.parametrize("state", SERVING)
def test_conversations_are_those_of_memlab_serve(state, lookup, capsys):  # noqa: F811
    state = {"use": SERVE, **state}
    found = answered(state, lookup, USERS)
    _, told = shell(capsys, verdict_of(state, lookup)["command"])
    held = told["sequences"]
    assert found["value"] == (told["blocks"] // told["request_blocks"] if held is None else held)


@pytest.mark.parametrize("state", SERVING)
def test_the_longest_context_holds_these_conversations_and_a_token_more_does_not(state, lookup):  # noqa: F811
    state = {"use": SERVE, **state}
    found = answered(state, lookup, CONTEXT)
    users, most = state.get("users", START["users"]), found["value"]
    if most:
        assert answered(state | {"context": max(2, most)}, lookup, USERS)["value"] >= users
    if most and not found["then"]:
        assert answered(state | {"context": most + 1}, lookup, USERS)["value"] < users


def test_apples_gpus_are_asked_about_for_llama_cpp_alone(lookup):  # noqa: F811
    state = {"use": SERVE, "engine": "llama.cpp", "card": "Apple 16GB"}
    rows = answered(state, lookup, GPUS)["rows"]
    assert len(rows) == len(devices()) + len(macs()) and [r[0] for r in rows if r[5]] == [
        "Apple 16GB"
    ]
    assert not [row for row in answered({"use": SERVE}, lookup, GPUS)["rows"] if "Apple" in row[0]]
    for other in ({"card": "Apple 16GB"}, {"use": SERVE, "card": "Apple 16GB"}):
        with pytest.raises(ValueError, match="Apple 16GB runs no CUDA"):
            verdict_of(other, lookup)


def test_a_state_without_a_table_says_that_its_peak_is_not_known(lookup):  # noqa: F811
    for what in (BATCH, TOKENS, GPUS):
        found = answered({"tensor": 2, "data": 2}, lookup, what)
        assert set(found) == {"line"} and "not known" in str(found["line"])
    mamba = {"model": "config", "config": {"model_type": "bloom", "hidden_size": 64}}
    assert "bloom" in str(answered(mamba, lookup, GPUS)["line"])
    with pytest.raises(ValueError, match="none of these questions"):
        answered({}, lookup, USERS)


def test_a_turn_ends_and_goes_on_where_it_was():
    known, made = Known(), []
    known.begin("one")
    for turn in range(1, 4):
        with pytest.raises(Later):
            for n in range(100):
                known.of(n, lambda n=n: made.append(n) or n)
        assert made == list(range(A_TURN // DEAR * turn))
        known.begin("one")
    known.begin("another")
    assert known.values == {}
    with pytest.raises(Later):
        for n in range(100):
            known.of(n, lambda n=n: n, CHEAP)
    assert len(known.values) == A_TURN // CHEAP


def test_the_engines_agree(folder, lookup):  # noqa: F811
    pairs = [(state, what) for state, _ in TRAINING for what, _ in TRAINED]
    pairs += [({"use": SERVE, **state}, what) for state in SERVING for what, _ in SERVED]
    pairs += [({"use": SERVE, "engine": "none", "dtype": "awq"}, what) for what, _ in SERVED]
    pairs += [({"tensor": 2, "data": 2}, BATCH), ({"batch": 0}, BATCH), ({"use": SERVE}, BATCH)]
    ours = []
    for state, what in pairs:
        try:
            ours.append(parts(answered(state, lookup, what)))
        except ValueError as error:
            ours.append({"error": parts(error.args[0])})
    theirs = there(folder, [], further=pairs)["further"]
    apart = [each for each in zip(pairs, ours, theirs, strict=True) if each[1] != each[2]]
    assert not apart, f"{len(apart)} of {len(pairs)}, the first as (asked, here, there): {apart[0]}"
