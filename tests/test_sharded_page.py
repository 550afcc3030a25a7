"""Several cards: the page answers the peak under FSDP2 and DDP as the package does, to the byte."""

import json
import random
import shlex
from pathlib import Path

import code_key
import peak_compare
import peaks
import pytest
import sharded_peaks
from calculator_states import SHARDED, sharded
from real_steps import deep
from test_calculator import agree, folder, lookup  # noqa: F401  fixtures

from memlab.cli import main
from memlab.families import tabled
from memlab.page import ways_out, words
from memlab.page.answer import answered
from memlab.page.controls import checked
from memlab.page.fsdp_tables import BY_VALUE, FSDP
from memlab.page.peak_files import moments, unfolded
from memlab.page.question import model_of, recipe_of, run_of
from memlab.page.table_peak import BUCKETS
from memlab.step import simulate
from memlab.step.parallel import supported
from memlab.step.parallel.fsdp import group

MANY = deep(24)
DRAW = random.Random(sharded_peaks.key())
KINDS = [(each, DRAW.choice(list(sharded_peaks.kinds_of(*each)))) for each in sharded_peaks.files()]


def test_they_were_made_by_the_code_as_it_is():
    assert sharded_peaks.stands(), "run python tools/sharded_peaks.py"


def test_the_key_covers_all_that_steps_are_made_from():
    mine = set(code_key.reached(Path(sharded_peaks.__file__)))
    assert set(code_key.reached(Path(peaks.__file__))) < mine and Path(group.__file__) in mine


def test_there_is_a_file_of_each_and_no_other():
    wanted = {sharded_peaks.path_of(*each).name for each in sharded_peaks.files()}
    assert wanted == {path.name for path in peaks.TARGET.glob(f"{FSDP}.*.json")}


@pytest.mark.parametrize(("file", "kind"), KINDS, ids=lambda each: ".".join(map(str, each)))
def test_a_kind_of_step_of_each_file_is_made_again(file, kind):
    kept = unfolded(sharded_peaks.path_of(*file).read_text(encoding="utf-8"))
    told = [tuple(each) for each in moments(kept, ".".join(kind))]
    assert told == sharded_peaks.moments_of(file[0], kind)


@pytest.fixture(scope="module")
def asked(lookup):  # noqa: F811
    """(state, the page's answer in CPython) for random questions that have a peak."""
    found: list = []
    for state in sharded(40 * MANY, peaks.key()):
        try:
            told = answered(state, lookup, advise=False)
        except (ValueError, TypeError):
            continue
        if told["peak"]:
            found.append((checked(state), told))
        if len(found) == MANY:
            return found
    raise AssertionError("too few states are described")


def test_the_peak_is_that_of_the_simulated_step(asked):
    for state, told in asked:
        step = simulate(model_of(state), recipe_of(state), run_of(state))
        peak_compare.hold(told, step, state)
    assert {model_of(state).family for state, _ in asked} >= set(tabled("fsdp"))


def test_the_engines_agree(lookup, folder, asked):  # noqa: F811
    states = [*(state for state, _ in asked), *SHARDED]
    agree(folder, lookup, states)


def test_the_shown_command_is_the_answer(asked, monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    for state, told in DRAW.sample(asked, 4):
        Path("config.json").write_text(json.dumps(state["config"]), encoding="utf-8")
        assert main([*shlex.split(told["command"])[1:], "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["peak"]["bytes"] == told["total"]


def test_the_optimizers_are_those_of_the_step():
    assert BY_VALUE == supported.BY_VALUE


def test_ddp_is_one_device_and_a_copy_of_the_gradients(lookup):  # noqa: F811
    """As tests/test_ddp_steps.py finds it on two real ranks."""
    one, two = ({"model": "qwen3-0.6b", "data": data} for data in (1, 2))
    alone, told = answered(one, lookup, advise=False), answered(two, lookup, advise=False)
    whole = checked(two)
    step = simulate(model_of(whole), recipe_of(whole), run_of(whole))
    rows = {row["term"]: row["bytes"] for row in told["rows"]}
    assert rows[BUCKETS] == 2 * model_of(whole).parameter_count
    assert told["total"] == step.peak.bytes == alone["total"] + rows[BUCKETS]


@pytest.mark.parametrize(
    ("state", "why"),
    [
        ({"data": 8, "zero": 2}, ways_out.NO_COPY_OF_WEIGHTS),
        ({"data": 8, "zero": 2, "precision": "zero"}, words.ZERO.format(stage=2)),
        ({"tensor": 8}, words.DIVIDED_ALONE),
        ({"pipeline": 4}, words.DIVIDED_ALONE),
        ({"data": 2, "tensor": 2}, words.DIVIDED),
        ({"data": 8, "zero": 3, "trained": "lora"}, words.NO_FSDP_ADAPTERS),
        ({"data": 8, "zero": 3, "optimizer": "muon"}, words.NO_FSDP_OPTIMIZER),
        ({"data": 8, "zero": 3, "precision": "zero"}, words.NO_FSDP_COPY),
        ({"data": 8, "zero": 3, "loss": "chunked"}, words.NO_FSDP_LOSS),
        ({"data": 8, "zero": 3, "attention": "eager"}, words.NO_FSDP_EAGER),
        ({"data": 8, "zero": 3, "model": "mixtral-8x7b"}, words.NO_FSDP_STEP),
    ],
)
def test_what_is_not_counted_is_said_by_name(lookup, state, why):  # noqa: F811
    told = answered(state, lookup)
    assert not told["peak"] and told["why"] == why.format(optimizer="muon", family="mixtral")


@pytest.mark.parametrize(
    "state", [{"data": 8, "zero": 2, "precision": "zero"}, {"tensor": 4}, {"pipeline": 4}]
)
def test_the_command_below_counts_what_the_page_does_not(lookup, state, capsys):  # noqa: F811
    told = answered({"model": "tinyllama-1.1b"} | state, lookup)
    assert main([*shlex.split(told["command"])[1:], "--tokens", "64", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["peak"]["bytes"] > told["total"]
