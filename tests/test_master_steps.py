"""Steps with fp32 copies beside bf16 weights: a few lines of ours, counted, and what is derived."""

import pytest
import torch
from real_steps import Question, build, module_vocab, quiet

from memlab import Model, Recipe, Run, estimate
from memlab.base.gc_paused import no_garbage
from memlab.lab.optim import optimizer as made_optimizer
from memlab.lab.precision import Copies
from memlab.lab.train import one_thread
from memlab.measure.step_tracker import StepTracker
from memlab.recipe.resident import resident
from memlab.run.optimizer_loops import loop_of
from memlab.step import simulate
from memlab.step.core.moments import hills

CONFIG = {"model_type": "llama", "hidden_size": 64, "intermediate_size": 96, "vocab_size": 300}
CONFIG |= {"num_hidden_layers": 5, "num_attention_heads": 4, "num_key_value_heads": 2}
RUNS = {
    "optimizer": Run.cpu(batch=1, tokens=4),
    "backward": Run.cpu(batch=2, tokens=64, micro_batches=2, optimizer_impl="fused"),
}


def peaks(recipe, run, config=CONFIG):
    """The peaks of two real steps, and what is held between them."""
    question = Question(config, "bf16", run)
    found = []
    with one_thread(), quiet(), no_garbage():
        module = build(question)
        copies = Copies(module, recipe)
        loop = loop_of(recipe, run)
        optimizer = made_optimizer(recipe.optimizer, copies.updated, loop=loop)
        ids = torch.randint(module_vocab(module), (run.batch, run.tokens))
        with StepTracker() as tracker:
            tracker.label(module)
            tracker.label([copies.master, copies.sums], "other")
            tracker.label(ids, "inputs")
            for _ in range(2):
                tracker.reset_peak()
                for _ in range(run.micro_batches):
                    copies.start_micro_batch()
                    loss = module(ids, labels=ids).loss
                    if run.micro_batches > 1:
                        loss = loss / run.micro_batches
                    loss.backward()
                    del loss
                copies.step(optimizer)
                found.append(tracker.peak)
                copies.start_step()
            return found, tracker.current


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize("name", ["zero", "megatron", "playbook"])
def test_a_master_copys_step_takes_what_is_derived(name, run):
    recipe = Recipe.named(name)
    step = simulate(Model.from_config(CONFIG), recipe, run)
    real, between = peaks(recipe, run)
    assert real == [step.peak.first_step_bytes, step.peak.bytes]
    assert between == step.held["between_steps"]


@pytest.mark.parametrize("optimizer", ["muon", "adafactor", "lion", "momentum"])
def test_other_optimizers_update_a_master_too(optimizer):
    recipe, run = Recipe.named("zero").replace(optimizer=optimizer), RUNS["optimizer"]
    config = CONFIG | {"tie_word_embeddings": True}
    step = simulate(Model.from_config(config), recipe, run)
    assert step.peak.moment == "optimizer"
    assert peaks(recipe, run, config)[0] == [step.peak.first_step_bytes, step.peak.bytes]


@pytest.mark.parametrize("name", ["zero", "megatron", "playbook", "scaling-book", "maxtext"])
def test_every_quoted_figure_has_a_step(name):
    model, run = Model.preset("Llama-3.2-1B"), Run(tokens=8)
    recipe = Recipe.named(name)
    step = simulate(model, recipe, run)
    kept = resident(model, recipe)
    gradients = kept.pop("gradients", model.parameter_count * (2 if name == "scaling-book" else 4))
    assert step.rows["gradients"] == gradients
    contents = step.held_contents["between_steps"]
    assert {term: contents[term] for term in kept} == kept
    assert estimate(model, name, run).total() == step.peak.bytes
    wide = 4 * model.parameter_count
    tops = {
        loop: hills(simulate(model, recipe, run.replace(optimizer_impl=loop)))["optimizer"].total()
        for loop in (("foreach", "fused") if recipe.master else ())
    }
    if recipe.master:
        assert tops["foreach"] - tops["fused"] == wide  # the roots of all second moments
        assert tops["fused"] - step.held["after_backward"] == (wide if name == "zero" else 0)
