"""Saved tensors on a host under transformers' code: every family holds what is simulated."""

from contextlib import nullcontext

import mixtures
import more_families
import pytest
import real_steps
import torch

from memlab import Run
from memlab.lab.host import File
from memlab.lab.offload import Offload
from memlab.lab.subject import loss_of, subject
from memlab.lab.train import one_thread
from memlab.measure import Tracker
from memlab.step.simulate import simulate

# One a kind of code: the suite has no time for all. All described families agreed when these did.
KINDS = ("gpt2", "llama", "qwen3", "gemma", "phi3", "gemma2", "qwen3_moe", "gpt_oss", "deepseek_v3")
COMPLEX = ("deepseek_v2", "llama4_text")  # positions turn pairs as complex numbers
DRAWN = [
    *real_steps.random_configs(8, 180, checkpoints=("none",)),
    *more_families.drawn(11, 180, checkpoints=("none",)),
    *mixtures.random_mixtures(9, 180, checkpoints=("none",)),
    *mixtures.random_mixtures(2, 180, families=COMPLEX, checkpoints=("none",)),
]


@pytest.mark.sample(6)
@pytest.mark.parametrize(
    "question", [q for q in DRAWN if q.family in KINDS + COMPLEX], ids=lambda q: q.family
)
def test_the_device_holds_what_is_simulated(question):
    said = question.run
    how = {"dropout": said.dropout, "attention": said.attention}
    run = Run.cpu(batch=2, tokens=24, offload=("saved",), **how)
    model = question.model
    recipe = question.recipe.replace(optimizer="adamw", states=None)
    step = simulate(model, recipe, run)
    torch.manual_seed(0)
    net: torch.nn.Module = subject(model, recipe, run)
    ids = torch.randint(model.vocab, (run.batch, 24))
    opt = torch.optim.AdamW(net.parameters(), foreach=False)
    narrow = question.recipe.autocast
    cast = torch.autocast("cpu", torch.bfloat16) if narrow else nullcontext()
    with one_thread(), Tracker() as tracker:
        tracker.label(net)
        tracker.label(ids, "inputs")
        for _ in range(2):
            with Offload(File(), keep=[net, ids]), cast:
                loss = loss_of(net, ids, run)
            held = tracker.current
            loss.backward()
            del loss
            opt.step()
            opt.zero_grad()
    # No tolerance: whole storages.
    assert held == step.held["after_forward"]
    assert tracker.peak == step.peak.bytes
