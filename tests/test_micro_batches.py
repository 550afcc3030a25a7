"""Gradient accumulation, simulated against real steps: to the byte, in every family."""

import json

import pytest
from compare import allocates_as_real, is_real
from real_steps import deep, random_configs

from memlab import Model, Run
from memlab.cli import main
from memlab.run.recipe_choice import PRECISIONS
from memlab.step import simulate
from memlab.terms.gradients import accumulation_transient

LLAMAS = ("llama", "mistral", "qwen2", "qwen3")
STEPS = [
    *random_configs(4, 71, families=LLAMAS, implementations=("memlab",), dropouts=(0.0,)),
    *random_configs(2, 72, families=("gpt2",), implementations=("memlab",), dropouts=(0.0,)),
    *random_configs(deep(5), 73),
    *random_configs(deep(5), 74, checkpoints=("block",)),
]
STEPS = [step.replace(micro_batches=2 + i % 3) for i, step in enumerate(STEPS)]


@pytest.mark.sample(9)
@pytest.mark.parametrize("step", STEPS, ids=str)
def test_every_figure_is_the_real_one(step):
    real, found = is_real(step)
    assert found.peak.micro_batch == (0 if real.peak.phase == "optimizer" else 2)


@pytest.mark.parametrize("step", STEPS[::4], ids=str)
def test_every_allocation_is_the_real_one(step):
    allocates_as_real(step)


@pytest.mark.parametrize("recipe", PRECISIONS.values(), ids=list(PRECISIONS))
def test_from_the_second_one_on_they_are_alike(recipe):
    model = Model.preset("tiny-llama").replace(layers=9)
    sizes = dict(batch=2, tokens=32, implementation="memlab")
    two, whole = (
        simulate(model, recipe, Run.cpu(**sizes, micro_batches=n), every_layer=n > 2)
        for n in (2, 5)
    )
    assert len(whole.log.events) > len(two.log.events)
    assert (two.held, two.rows, two.peak) == (whole.held, whole.rows, whole.peak)


def test_they_cost_their_gradients_and_no_more_for_more_of_them():
    """The activations' peak stands on all gradients; the fresh ones are those of the term."""
    model = Model.preset("tiny-gpt").replace(tied=False)
    sizes = dict(batch=8, tokens=64, implementation="memlab", optimizer_impl="fused")
    one, two, many = (
        simulate(model, "fp32", Run.cpu(**sizes, micro_batches=n)).peak for n in (1, 2, 64)
    )
    assert many == two
    assert two.moment == "loss" and two.contents["gradients"] == 4 * model.parameter_count
    largest = max(tensor.numel for tensor in model.tensors())
    most = one.bytes + 4 * model.parameter_count + accumulation_transient(largest, micro_batches=2)
    assert one.bytes < two.bytes <= most


@pytest.mark.parametrize("n, error", [(0, ValueError), (-1, ValueError), (1.5, TypeError)])
def test_a_step_has_a_whole_number_of_them(n, error):
    with pytest.raises(error, match=f"micro_batches={n}"):
        simulate(Model.preset("tiny-llama"), "fp32", Run.cpu(batch=1, tokens=8, micro_batches=n))


def test_the_shell_says_the_same(capsys):
    words = "estimate tiny-llama --batch 3 --tokens 32 --implementation memlab --micro-batches 4"
    assert main([*words.split(), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    how = dict(batch=3, tokens=32, implementation="memlab", micro_batches=4)
    found = simulate(Model.preset("tiny-llama"), "fp32", Run(**how))
    assert said["held"] == found.held and said["peak"]["bytes"] == found.peak.bytes
    assert main(words.split()) == 0
    assert "4 micro-batches of 3 x 32 tokens" in capsys.readouterr().out
