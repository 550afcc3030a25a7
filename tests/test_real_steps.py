"""The real steps themselves: reproducible, complete, and counted the same by two methods."""

import random

import pytest
from real_steps import FAMILIES, StepConfig, random_configs, real_step

LLAMA = StepConfig(
    {
        "model_type": "llama",
        "num_hidden_layers": 2,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "vocab_size": 61,
    }
)


@pytest.mark.parametrize("family", FAMILIES)
def test_two_runs_of_one_step_are_the_same(family):
    (step,) = random_configs(1, seed=5, families=(family,))
    first, again = real_step(step), real_step(step)
    slim = [{**run.to_json(), "seconds": 0} for run in (first, again)]
    assert slim[0] == slim[1]
    # Storages that go at the same time may go in any order.
    totals = [[e.total for e in run.events if e.kind != "free"] for run in (first, again)]
    assert totals[0] == totals[1]


def test_a_step_adds_up():
    run = real_step(LLAMA)
    ids = 8 * LLAMA.batch * LLAMA.tokens
    # Autograd keeps the ids for the embedding, and the hooks count them; here they are inputs.
    assert run.saved == run.activations + run.logits + ids
    stay = run.resident
    between = stay["weights"] + stay["buffers"] + stay["optimizer"] + ids
    assert run.held["between_steps"] == between
    assert run.held["after_backward"] == between + stay["gradients"]
    # The loss is alive after forward, and autograd does not keep it.
    assert run.held["after_forward"] == between + run.activations + run.logits + 4
    assert stay["weights"] == stay["gradients"] == 4 * run.parameters
    assert sum(run.peak.contents.values()) == run.peak.bytes == run.events[run.peak.index].total
    # The states are born in the first step's last phase, and are there in all of the second.
    assert run.first_peak.index < run.second <= run.peak.index
    assert run.first_peak.bytes <= run.peak.bytes


def test_memlabs_own_models_run_the_same_step():
    theirs, ours = real_step(LLAMA), real_step(LLAMA.replace(implementation="memlab"))
    assert ours.parameters == theirs.parameters
    assert ours.resident["optimizer"] == theirs.resident["optimizer"]
    assert ours.activations != theirs.activations, "another implementation, other activations"


def test_random_configs_are_seeded_and_reach_every_option():
    assert random_configs(9, seed=3) == random_configs(9, seed=3) != random_configs(9, seed=4)
    drawn = random_configs(200, seed=0)
    assert {step.family for step in drawn} == set(FAMILIES)
    for option in ("precision", "attention", "optimizer", "dropout"):
        assert len({getattr(step, option) for step in drawn}) > 1, option
    rng = random.Random(0)
    assert all(step.replace(batch=1) != step.replace(batch=7) for step in rng.sample(drawn, 5))


def test_an_unknown_option_is_named():
    with pytest.raises(ValueError, match="unknown precision 'fp16'; known: fp32, bf16"):
        real_step(LLAMA.replace(precision="fp16"))
