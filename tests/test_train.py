"""Training really trains, is repeatable, and its bytes are the derived ones."""

import re
import subprocess
import sys

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from memlab import Model, Recipe, estimate
from memlab.lab.optim import LEARNING_RATES, Lion, optimizer
from memlab.lab.precision import Copies
from memlab.lab.train import build, train
from memlab.measure import resident, storage_bytes

LLAMA = Model.preset("tiny-llama")
GPT = Model.preset("tiny-gpt")
SMALL = {"steps": 2, "batch": 4, "tokens": 16}


@pytest.mark.sample(1)
@pytest.mark.parametrize("recipe", ["fp32", "bf16", "autocast", "zero"])
def test_the_loss_falls(recipe):
    losses = train(LLAMA, recipe, steps=30, batch=4, tokens=64).losses
    assert len(losses) == 30
    assert 5.5 < losses[0] < 5.8  # ln 256 = 5.545, and a little for unequal first guesses
    assert sum(losses[-5:]) / 5 < 2.8


def test_gpt_learns_too():
    losses = train(GPT, steps=30).losses
    assert losses[0] > 5.5 and min(losses) < 3.0


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", LEARNING_RATES)
def test_every_optimizer_lowers_the_loss(name):
    losses = train(LLAMA, Recipe(optimizer=name), steps=6, batch=4, tokens=32).losses
    assert losses[-1] < losses[0] - 0.5


def test_a_seed_fixes_every_loss():
    first = train(LLAMA, **SMALL)
    again = train(LLAMA, **SMALL)
    other = train(LLAMA, **SMALL, seed=1)
    assert first.losses == again.losses and first.losses != other.losses
    assert first.tracker.peak == again.tracker.peak


def test_training_leaves_torch_as_it_was():
    threads, state = torch.get_num_threads(), torch.get_rng_state()
    train(LLAMA, **SMALL)
    assert torch.get_num_threads() == threads and torch.equal(torch.get_rng_state(), state)


RECIPES = [
    *map(Recipe.named, ["fp32", "bf16", "autocast", "zero", "megatron", "playbook"]),
    *(Recipe(name=name, optimizer=name) for name in LEARNING_RATES),
    Recipe(name="bf16 muon", weights="bf16", gradients="bf16", optimizer="muon"),
    Recipe(name="sum of fp32 gradients", accumulator="fp32"),
    Recipe(name="other tie", tie=True),
]


@pytest.mark.sample(18)
@pytest.mark.parametrize("model", [LLAMA, GPT], ids=["llama", "gpt"])
@pytest.mark.parametrize("recipe", RECIPES, ids=lambda r: r.name)
def test_derived_and_measured_are_zero_bytes_apart(model, recipe):
    parts = 2 if recipe.accumulator else 1  # a sum of one gradient needs no accumulator
    run = train(model, recipe, **SMALL, micro_batches=parts)
    ledger = estimate(model, recipe).beside(run.ledger)
    assert ledger.columns == ("derived", "measured")
    assert [row.difference for row in ledger.rows] == [0] * len(ledger.rows)


def test_the_ledger_is_what_is_still_resident():
    run = train(LLAMA, **SMALL)
    found = resident(run.module, run.optimizer)
    assert found.pop("buffers") == 2 * LLAMA.positions * LLAMA.head_dim * 4  # cosines and sines
    assert {row.term: row.measured for row in run.ledger.rows} == found
    seen = run.tracker.contents()
    assert {term: seen[term] for term in found} == found
    assert seen["inputs"] == 4 * 16 * 8 and seen["other"] == 4  # the last batch and its loss


def test_the_tracker_saw_each_phase():
    events = train(LLAMA, **SMALL).tracker.timeline
    assert {"forward", "backward", "step"} <= {event.phase for event in events}


def test_micro_batches_change_the_peak_and_not_the_loss():
    whole = train(LLAMA, "fp32", steps=4)
    parts = train(LLAMA, "fp32", steps=4, micro_batches=4)
    # The same sums in another order: fp32 agrees to about six digits.
    torch.testing.assert_close(parts.losses, whole.losses, rtol=1e-4, atol=0)
    assert parts.tracker.peak < whole.tracker.peak
    assert parts.ledger["gradients"] == whole.ledger["gradients"]


@pytest.mark.parametrize("recipe", ["fp32", "bf16", "playbook"])
def test_meta_and_fake_tensors_trace_the_same_bytes(recipe):
    measured = train(LLAMA, recipe, **SMALL).ledger
    on_meta = train(LLAMA, recipe, **SMALL, device="meta")
    with FakeTensorMode():
        on_fake = train(LLAMA, recipe, **SMALL)
    for run in (on_meta, on_fake):
        assert run.losses == [] and run.ledger.columns == ("traced",)
        both = run.ledger.beside(measured)
        assert all(row.traced == row.measured for row in both.rows)


def test_fake_tensors_trace_autocast_and_a_tied_head():
    recipe = Recipe(weights="bf16", gradients="bf16", autocast="bf16", tie=True)
    with FakeTensorMode():
        run = train(LLAMA, recipe, **SMALL)
    assert estimate(LLAMA, recipe).beside(run.ledger).difference() == 0
    assert run.module.embedding.weight is run.module.lm_head.weight


def test_a_real_model_is_traced_without_its_memory():
    model = Model.preset("qwen3-0.6b")
    run = train(model, "bf16", steps=1, batch=1, tokens=16, device="meta")
    assert estimate(model, "bf16").beside(run.ledger).difference() == 0
    assert run.ledger["weights"].traced == 2 * 596_049_920


def test_a_master_keeps_what_bf16_would_lose():
    recipe = Recipe.named("zero")
    module = build(LLAMA, recipe)
    copies = Copies(module, recipe)
    opt = torch.optim.SGD(copies.updated.values(), lr=1.0)
    weight = module.final_norm.weight  # ones: the next bf16 number is 1 + 1/128
    for _ in range(4):
        copies.start_step()
        for parameter in module.parameters():
            parameter.grad = torch.full_like(parameter, -1 / 512)
        copies.step(opt)
    assert torch.equal(copies.master["final_norm.weight"], torch.full((128,), 1 + 4 / 512))
    assert torch.equal(weight, torch.full((128,), 1 + 1 / 128, dtype=torch.bfloat16))
    assert all(copy.grad is None for copy in copies.master.values())


def test_sums_are_the_gradients_of_all_micro_batches():
    recipe = Recipe.named("megatron")
    module = build(LLAMA, recipe)
    copies = Copies(module, recipe)
    ids = torch.arange(32).view(2, 16)
    wide = {}
    copies.start_step()
    for part in ids.chunk(2):
        copies.start_micro_batch()
        module(part, part).backward()
        alone = build(LLAMA, Recipe.named("bf16"))
        alone(part, part).backward()
        for name, p in alone.named_parameters():
            wide[name] = wide.get(name, 0) + p.grad.float()
    assert all(torch.equal(copies.sums[name], wide[name]) for name in wide)
    assert all(p.grad is None for p in module.parameters())


def test_lion_moves_by_the_sign_of_its_mean():
    p = torch.tensor([1.0, -2.0, 3.0])
    opt = Lion([p], lr=0.1, betas=(0.9, 0.99), weight_decay=0.5)
    mean = torch.zeros(3)
    expected = p.clone()
    for gradient in (torch.tensor([1.0, -1.0, 0.0]), torch.tensor([-0.05, 5.0, 2.0])):
        p.grad = gradient
        opt.step()
        expected -= 0.1 * (torch.sign(0.9 * mean + 0.1 * gradient) + 0.5 * expected)
        mean = 0.99 * mean + 0.01 * gradient
    torch.testing.assert_close(p, expected)
    torch.testing.assert_close(opt.state[p]["exp_avg"], mean)


@pytest.mark.parametrize("model", [LLAMA, GPT], ids=["llama", "gpt"])
def test_muon_takes_the_hidden_matrices_and_adamw_the_rest(model):
    named = dict(build(model, Recipe()).named_parameters())
    both = optimizer("muon", named)
    muon, adamw = both.optimizers
    assert isinstance(muon, torch.optim.Muon) and isinstance(adamw, torch.optim.AdamW)
    hidden = sum(t.count for t in model.tensors() if t.linear and t.name != "lm_head")
    assert sum(p.numel() for p in muon.param_groups[0]["params"]) == hidden
    assert sum(p.numel() for g in both.param_groups for p in g["params"]) == model.parameter_count
    for p in named.values():
        p.grad = torch.ones_like(p)
    both.step()
    assert storage_bytes(both) == storage_bytes(muon) == storage_bytes(adamw)  # one table


def test_low_bit_optimizers_print_nothing():
    code = (
        "from memlab import Model, Recipe; from memlab.lab.train import train;"
        "train(Model.preset('tiny-llama'), 'adamw_fp8', steps=1, batch=1, tokens=8)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    "recipe, changes, message",
    [
        (Recipe(weights="int8"), {}, "weights='int8' cannot be trained here; known: fp32, bf16"),
        (Recipe(autocast="fp16"), {}, "autocast='fp16' cannot be trained here"),
        (Recipe(master="bf16"), {}, "master='bf16' cannot be trained here; known: fp32"),
        (Recipe(weights="bf16"), {}, "gradients='fp32' beside weights='bf16' and master=None"),
        (Recipe(other="bf16"), {}, "other='bf16' cannot be trained here"),
        (Recipe.named("scaling-book"), {}, "states=('fp32', 'fp32') cannot be trained here"),
        (Recipe.named("autocast"), {"device": "meta"}, "autocast does not run on meta"),
        (Recipe(), {"micro_batches": 3}, "batch=8 is not a multiple of micro_batches=3"),
        (Recipe(), {"tokens": 257}, "tokens=257 is more than the 256 of tiny-llama"),
        (Recipe(), {"steps": 0}, "steps=0; at least 1 is needed"),
        ("fp23", {}, "unknown recipe 'fp23'; did you mean fp32? known: fp32"),
    ],
)
def test_what_cannot_be_trained_is_refused_by_name(recipe, changes, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        train(LLAMA, recipe, **changes)


def test_a_vocabulary_without_all_bytes_is_refused():
    with pytest.raises(ValueError, match="vocab=255 is too small: the text has bytes, 256"):
        train(LLAMA.replace(vocab=255))


def test_an_unknown_optimizer_lists_the_known_ones():
    with pytest.raises(ValueError, match="unknown optimizer 'adam'; known: sgd, momentum, adamw"):
        optimizer("adam", {})


@pytest.mark.sample(1)
@pytest.mark.parametrize("kind", ["adamw", "adamw4bit", "muon"])
def test_a_run_that_nobody_watches_has_the_same_losses_and_ledger(kind):
    recipe, short = Recipe(name=kind, optimizer=kind), {"steps": 3, "batch": 2, "tokens": 16}
    watched, alone = (train(LLAMA, recipe, watch=watch, **short) for watch in (True, False))
    assert alone.losses == watched.losses
    assert alone.ledger == watched.ledger
    assert len(alone.tracker.timeline) < len(watched.tracker.timeline) / 10
