"""torch's own loss in chunks on the calculator's page: its tables, its answers, and the advice."""

import json
import random

import adapter_peaks
import peak_compare
import peaks
import pytest
import torch_loss_peaks as tables
from calculator_states import adapted, states
from real_steps import deep
from test_calculator import agree, folder, lookup  # noqa: F401  fixtures

from memlab.explain.last_changes import TORCHS
from memlab.fit import cheapest_change
from memlab.page import words
from memlab.page.answer import answered, outcome
from memlab.page.controls import checked
from memlab.page.peak_files import moments, unfolded
from memlab.page.question import model_of, recipe_of, run_of
from memlab.step import simulate
from memlab.units import text

MANY = deep(60)
LOSS = "linear_cross_entropy"
DRAW = random.Random(tables.key())
KINDS = [(each, DRAW.choice(list(tables.kinds_of(*each[:2], each[3])))) for each in tables.files()]


def test_they_were_made_by_the_code_as_it_is():
    assert tables.stands(), "run python tools/torch_loss_peaks.py"


def test_there_is_a_file_of_each_and_no_other():
    wanted = {tables.path_of(*each).name for each in tables.files()}
    assert wanted == {path.name for path in peaks.TARGET.glob("torch.*.json")}
    whole = {each[0] for each in tables.files() if not each[3]}
    assert {"llama", "gpt2", "qwen3_moe", "deepseek_v3"} < whole
    assert not whole & {"gemma2", "cohere2", "granite", "llama4_text"}


@pytest.mark.sample(29)
@pytest.mark.parametrize(("file", "kind"), KINDS, ids=lambda each: ".".join(map(str, each)))
def test_a_kind_of_step_of_each_file_is_made_again(file, kind):
    kept = unfolded(tables.path_of(*file).read_text(encoding="utf-8"))
    name = tables.kind_of(".".join(kind)) if file[3] else ".".join(kind)
    told = [tuple(each) for each in moments(kept, name)]
    assert told == tables.moments_of(*[file[0], kind], *file[2:])


@pytest.fixture(scope="module")
def asked(lookup):  # noqa: F811
    """(state, the page's answer in CPython) for random questions that have a peak."""
    found: list = []
    alone = {"loss": LOSS, "data": 1, "zero": 0, "tensor": 1, "pipeline": 1}
    for one, other in zip(states(20 * MANY, 21), adapted(20 * MANY, 21), strict=True):
        for state in (one | alone, other | alone):
            try:
                told = answered(state, lookup)
            except (ValueError, TypeError):
                continue
            if told["peak"]:
                found.append((checked(state), told))
        if len(found) >= MANY:
            return found
    raise AssertionError("too few questions have a peak")


def test_the_questions_are_of_many_kinds(asked):
    assert len({model_of(state).family for state, _ in asked}) >= 15
    assert {recipe_of(state).weights for state, _ in asked} == {"bf16", "fp32"}
    assert {run_of(state).lora is None for state, _ in asked} == {True, False}
    assert {run_of(state).micro_batches > 1 for state, _ in asked} == {True, False}


def test_the_peak_is_that_of_the_simulated_step(asked):
    for state, told in asked:
        whole = checked(state)
        step = simulate(model_of(whole), recipe_of(whole), run_of(whole))
        peak_compare.hold(told, step, state)


def test_the_pages_engine_answers_the_same(asked, folder, lookup):  # noqa: F811
    agree(folder, lookup, [state for state, _ in asked])


@pytest.mark.parametrize(
    ("state", "why"),
    [
        ({"precision": "autocast"}, words.NO_TORCH_LOSS),
        ({"model": "llama-2-7b"}, words.NO_KIND),  # published in fp16
        ({"model": "gemma-2-2b"}, words.CHUNKED.format(family="gemma2")),
        ({"data": 8}, "loss=linear_cross_entropy is supported on one GPU only"),
        ({"loop": "trainer"}, words.NO_LOOP_LOSS),
    ],
)
def test_what_is_not_described_says_why(lookup, state, why):  # noqa: F811
    told = outcome(json.dumps({"loss": LOSS, "model": "qwen3-0.6b"} | state), lookup)
    assert str(told.get("error") or told["why"]) == why


def test_a_model_with_fewer_words_than_its_width_has_no_table(lookup):  # noqa: F811
    """There torch's loop makes something else of each chunk, or has one chunk alone."""
    config = {"model_type": "llama", "hidden_size": 1024, "intermediate_size": 4096}
    config |= {"num_hidden_layers": 8, "num_attention_heads": 8, "num_key_value_heads": 8}
    for vocab, peak in ((1000, False), (1025, True)):
        state = {"model": "config", "config": config | {"vocab_size": vocab}, "loss": LOSS}
        assert answered(state | {"tokens": 512}, lookup)["peak"] == peak


@pytest.mark.parametrize(
    "state",
    [
        {"model": "llama-3-8b", "tokens": 12288, "card": "H200"},
        {"model": "qwen3-1.7b", "tokens": 8192, "batch": 2, "card": "RTX 4090"},
        {"model": "gemma-2b", "tokens": 2048, "batch": 4, "card": "A100 40GB"},
    ],
    ids=lambda state: state["model"],
)
def test_both_doors_advise_it_with_one_figure(lookup, state):  # noqa: F811
    told, whole = answered(state, lookup), checked(state)
    wanted = cheapest_change(model_of(whole), recipe_of(whole), run_of(whole), on=state["card"])
    assert TORCHS.name in [name for name, *_ in wanted]
    assert told["changes"] == [[name, cost, text(size)] for name, cost, size, _ in wanted]
    assert told["flags"] == [line for *_, line in wanted]
    sets: dict = {}
    for each in told["sets"]:
        sets |= each
    assert sets["loss"] == LOSS
    after = answered(state | sets, lookup)
    assert after["fits"] and after["total_text"] == told["changes"][-1][2]
    assert f"--loss {LOSS}" in after["command"] and f'loss="{LOSS}"' in after["script"]


def test_the_adapters_tables_stand_beside_these():
    """What one makes, the other makes with another loss: of the same families and precisions."""
    mine = {each for each in tables.files() if each[3]}
    theirs = {each for each in adapter_peaks.files() if each[0] in tables.FAMILIES}
    assert mine == {each for each in theirs if each[1] in ("bf16", "fp32")}
