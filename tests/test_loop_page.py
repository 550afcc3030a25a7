"""Steps of named loops: the page answers their peak as the package does, to the byte."""

import json
import random
import shlex
from collections import Counter
from pathlib import Path

import adapter_peaks
import code_key
import loop_peaks
import peak_compare
import peaks
import pytest
from calculator_states import LOOPED, looped
from real_steps import deep
from test_calculator import agree, folder, lookup  # noqa: F401  fixtures

from memlab.cli import main
from memlab.estimate import estimate
from memlab.page import words
from memlab.page.adapter_tables import kind_of
from memlab.page.answer import answered, outcome
from memlab.page.controls import checked
from memlab.page.loop_controls import CHOICES
from memlab.page.loop_tables import TABLED, tiled
from memlab.page.peak_files import moments, unfolded
from memlab.page.question import model_of, recipe_of, run_of
from memlab.run.loops import HEADED, LOOPS, TAUGHT
from memlab.step import simulate
from memlab.step.loops import fused_tiles

MANY = deep(40)
ASKED = [loop for loop in list(LOOPS)[1:] if loop not in TAUGHT]  # no teacher is asked for
DRAW = random.Random(loop_peaks.key())
# Of some files a kind of step, others for other code.
KINDS = [
    (each, DRAW.choice(list(loop_peaks.kinds_of(*each[:3], each[4]))))
    for each in DRAW.sample(list(loop_peaks.files()), deep(20))
]


def test_they_were_made_by_the_code_as_it_is():
    assert loop_peaks.stands(), "run python tools/loop_peaks.py"


def test_the_key_covers_all_that_steps_are_made_from():
    mine = set(code_key.reached(Path(loop_peaks.__file__)))
    assert set(code_key.reached(Path(adapter_peaks.__file__))) < mine
    assert Path(fused_tiles.__file__) in mine


def test_there_is_a_file_of_each_and_no_other():
    wanted = {loop_peaks.path_of(*each).name for each in loop_peaks.files()}
    kept = {path.name for path in peaks.TARGET.glob("*.json")}
    assert wanted == {name for name in kept if name.split(".")[0] in LOOPS}
    assert {name.split(".")[0] for name in wanted} == set(TABLED)


@pytest.mark.sample(10)
@pytest.mark.parametrize(("file", "kind"), KINDS, ids=lambda each: ".".join(map(str, each)))
def test_a_kind_of_step_of_some_files_is_made_again(file, kind):
    kept = unfolded(loop_peaks.path_of(*file).read_text(encoding="utf-8"))
    name = ".".join(kind)
    told = [tuple(each) for each in moments(kept, kind_of(name) if file[4] else name)]
    assert told == loop_peaks.moments_of(*file[:2], kind, *file[3:])


def test_other_keys_and_values_than_those_of_the_tables_are_left_to_the_command(lookup):  # noqa: F811
    """A config without a cache, and the number that is beside those of a layer with a window."""
    small = {"model_type": "llama", "hidden_size": 512, "intermediate_size": 1024}
    small |= {"num_hidden_layers": 4, "num_attention_heads": 8, "vocab_size": 1000}
    kept = {"loop": "keeps-outputs"}
    told = answered(kept | {"model": "config", "config": small}, lookup, advise=False)
    assert [row["bytes"] for row in told["rows"] if row["term"] == "KV cache"]
    for other in (
        {"model": "config", "config": small | {"use_cache": False}},
        {"model": "mistral-7b-v0.1", "tokens": 2048},
    ):
        asked = kept | other
        told = answered(asked, lookup, advise=False)
        assert not told["peak"] and "not in the tables" in told["why"]
        assert answered(asked | {"checkpoint": "block"}, lookup, advise=False)["peak"]


def test_tiles_are_those_of_the_kernel_again():
    """What the tool puts in their place is gone when it is done."""
    before = fused_tiles.TOKENS, fused_tiles.WORDS, fused_tiles.parts
    with loop_peaks.tiles((*"abcdefghijk", "one-many")):
        assert len(fused_tiles.parts(9, 3, "n")) == 1
        assert len(fused_tiles.parts(9, 3, "c")) == 3
    assert (
        (fused_tiles.TOKENS, fused_tiles.WORDS, fused_tiles.parts)
        == before
        == (
            4096,
            32768,
            before[2],
        )
    )


@pytest.fixture(scope="module")
def asked(lookup):  # noqa: F811
    """(state, the page's answer in CPython) for random questions that have a peak."""
    found: list = []
    seen: Counter = Counter()
    for state in looped(80 * MANY, peaks.key()):
        try:
            told = answered(state, lookup, advise=False)
        except (ValueError, TypeError):
            continue
        whole = checked(state)
        if told["peak"] and seen[whole["loop"]] < -(-MANY // len(ASKED)):
            seen[whole["loop"]] += 1
            found.append((whole, told))
        if len(found) >= MANY:
            break
    assert len(found) >= MANY and set(seen) == set(ASKED)
    return found


def test_the_peak_is_that_of_the_simulated_step(asked):
    for state, told in asked:
        step = simulate(model_of(state), recipe_of(state), run_of(state))
        peak_compare.hold(told, step, state)


@pytest.mark.parametrize("tokens", [4096, 4097, 8192, 8193, 12289])
def test_each_number_of_tiles_is_that_of_the_step(lookup, tokens):  # noqa: F811
    """Under autocast the head copies tiles: the last of them may be one row."""
    state = {"loop": "sft", "precision": "autocast", "tokens": tokens, "checkpoint": "block"}
    for more in ({"model": "qwen3-0.6b"}, {"model": "tinyllama-1.1b", "completion": 4096 - 1}):
        if tokens > 2048 and more["model"] == "tinyllama-1.1b":
            more = more | {"model": "llama-3.2-1b"}
        told = answered(state | more, lookup, advise=False)
        whole = checked(state | more)
        step = simulate(model_of(whole), recipe_of(whole), run_of(whole))
        peak_compare.hold(told, step, whole)
    assert tiled("sft", "autocast") and not tiled("sft", "bf16")


def test_the_engines_agree(lookup, folder, asked):  # noqa: F811
    states = [*(state for state, _ in asked), *LOOPED]
    agree(folder, lookup, states)


def test_the_shown_command_is_the_answer(asked, monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    for state, told in DRAW.sample(asked, 6):
        Path("config.json").write_text(json.dumps(state["config"]), encoding="utf-8")
        assert main([*shlex.split(told["command"])[1:], "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["peak"]["bytes"] == told["total"]
        made: dict = {}
        exec(told["script"].replace("print(", "found = ("), made)  # noqa: S102
        assert made["found"].total() == told["total"]


def test_every_loop_has_a_name_that_says_whose_it_is():
    values = dict(CHOICES[0][2])
    assert set(values) == set(LOOPS)
    for loop, library in (("trainer", "transformers"), *((each, "TRL") for each in HEADED)):
        assert library in values[loop] and "Trainer" in values[loop]


def test_a_trainer_takes_fused_adamw_unless_it_is_told_another(lookup):  # noqa: F811
    usual = answered({"loop": "trainer"}, lookup, advise=False)
    fused = answered({"loop": "trainer", "optimizer_impl": "fused"}, lookup, advise=False)
    each = answered({"loop": "trainer", "optimizer_impl": "foreach"}, lookup, advise=False)
    assert usual["hills"] == fused["hills"] != each["hills"]


def test_advice_names_the_flag_of_the_trainer(lookup):  # noqa: F811
    for loop, config in (("trainer", "TrainingArguments"), ("sft", "SFTConfig")):
        told = answered({"loop": loop, "card": "A100 40GB", "model": "qwen3-4b"}, lookup)
        assert told["flags"] and all(config in each or "from_p" in each for each in told["flags"])
        state = {"loop": loop, "card": "A100 40GB", "model": "qwen3-4b"} | told["sets"][-1]
        after = answered(state, lookup, advise=False)
        assert after["fits"] and after["total_text"] == told["changes"][-1][2]


@pytest.mark.parametrize(
    ("state", "why"),
    [
        ({"loop": "sft", "model": "mixtral-8x7b"}, words.NO_LOOP_STEP.format(family="mixtral")),
        ({"loop": "trainer", "model": "opt-125m", "tokens": 512}, words.NO_LOOP_STEP),
        ({"loop": "sft", "precision": "zero"}, words.NO_LOOP_COPY),
        ({"loop": "nanogpt", "trained": "lora"}, words.NO_LOOP_ADAPTERS),
        ({"loop": "dpo", "trained": "lora", "precision": "fp32"}, words.NO_LOOP_PRECISION),
        ({"loop": "grpo", "attention": "eager"}, words.NO_LOOP_EAGER),
        ({"loop": "trainer", "data": 8, "zero": 3}, words.NO_LOOP_DEVICES),
    ],
)
def test_what_is_not_counted_says_so_and_what_stays(lookup, state, why):  # noqa: F811
    told = answered(state, lookup)
    assert not told["peak"] and told["why"] == why.format(family="opt")
    assert f"--loop {state['loop']}" in told["command"]


def test_pairs_are_two_sequences_and_a_second_model(lookup):  # noqa: F811
    told = answered({"loop": "dpo"}, lookup, advise=False)
    rows = {row["term"]: row["bytes"] for row in told["rows"]}
    assert (
        rows["reference"] == rows["weights"] and "1 × 2 × 4,096 tokens, in pairs" in told["heading"]
    )
    assert "llama-3-8b, DPOTrainer ·" in told["heading"]
    held = estimate(model_of(checked({})), None, run_of(checked({"loop": "dpo"})))
    assert held.total() == told["total"]


@pytest.mark.parametrize(
    ("state", "line"),
    [
        ({"loop": "sft", "loss": "chunked"}, words.NO_LOOP_LOSS),
        ({"loop": "ppo"}, "Training framework: “ppo” is not one of the choices"),
        (
            {"loop": "sft", "completion": 5000},
            "completion=5000; of 4096 tokens 1 to 4095 can be the completion",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(lookup, state, line):  # noqa: F811
    assert outcome(json.dumps(state), lookup) == {"error": line}


def test_who_serves_is_not_asked_about_loops(lookup):  # noqa: F811
    plain = outcome(json.dumps({"use": "serve"}), lookup)
    assert outcome(json.dumps({"use": "serve", "loop": "dpo"}), lookup) == plain


def test_two_tiles_of_words_are_next_to_each_other(lookup):  # noqa: F811
    """A vocabulary of more than one tile and less than three: the last tile follows the first."""
    sizes = {"hidden_size": 1024, "num_attention_heads": 8, "num_key_value_heads": 2}
    sizes |= {"num_hidden_layers": 6, "intermediate_size": 1000, "vocab_size": 50257}
    state = {"loop": "sft", "precision": "autocast", "tokens": 2048, "model": "config"}
    state["config"] = {"model_type": "qwen2", "pad_token_id": None} | sizes
    told = answered(state, lookup, advise=False)
    whole = checked(state)
    step = simulate(model_of(whole), recipe_of(whole), run_of(whole))
    peak_compare.hold(told, step, whole)
