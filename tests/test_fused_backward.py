"""The step inside backward: the same weights, no gradients left, and the peak that is derived."""

import pytest
import torch

from memlab import Model
from memlab.lab.fused_backward import step_in_backward
from memlab.lab.steps import watch
from memlab.lab.subject import subject
from memlab.lab.text import batches
from memlab.measure import trace
from memlab.step import simulate

MODEL = Model(layers=6, d_model=32, d_ff=48, heads=4, kv_heads=2, vocab=256, positions=32)
ADAMW = {"forloop": {"foreach": False}, "foreach": {"foreach": True}, "fused": {"fused": True}}


def module(model, program="memlab", **how):
    torch.manual_seed(0)
    return subject(model, implementation=program, **how)


def inside(**how):
    return lambda parameters: step_in_backward(parameters, lambda p: torch.optim.AdamW(p, **how))


@pytest.mark.parametrize("name", ADAMW)
@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("program", ["memlab", "transformers"])
def test_the_peak_of_each_step_is_the_simulated_one(program, tied, name):
    model = MODEL.replace(tied=tied)
    run = watch(module(model, program), batches(2, 16, steps=2), optimizer=inside(**ADAMW[name]))
    how = dict(batch=2, tokens=16, implementation=program, optimizer_impl=name)
    step = simulate(model, "fp32", step_in_backward=True, **how)
    assert run.peaks == [step.peak.first_step_bytes, step.peak.bytes]
    plain = simulate(model, "fp32", **how)
    assert plain.held["after_backward"] - step.held["after_backward"] == plain.rows["gradients"]
    assert run.hills()["optimizer"].total() == step.held["after_backward"]
    assert step.rows["gradients"] == 0


@pytest.mark.parametrize("again", [False, True])
def test_traced_with_and_without_checkpoints(again):
    ids = torch.zeros(2, 16, dtype=torch.long)
    seen = trace(lambda: module(MODEL, again=again), (ids, ids), backend="cpu", optimizer=inside())
    how = {"optimizer_impl": "forloop", "checkpoint": "block" if again else "none"}
    step = simulate(
        MODEL, "fp32", batch=2, tokens=16, implementation="memlab", step_in_backward=True, **how
    )
    assert (seen.peak, seen.first_step_peak) == (step.peak.bytes, step.peak.first_step_bytes)


def test_it_trains_the_same_weights():
    plain, fused = module(MODEL), module(MODEL)
    losses = watch(plain, batches(2, 16, steps=3)).losses
    assert watch(fused, batches(2, 16, steps=3), optimizer=inside()).losses == losses
    for one, other in zip(plain.parameters(), fused.parameters(), strict=True):
        assert torch.equal(one, other) and other.grad is None


def test_a_schedule_reaches_every_optimizer():
    net = torch.nn.Linear(3, 2)
    optimizer = step_in_backward(net.parameters(), lambda p: torch.optim.SGD(p, lr=1.0))
    for group in optimizer.param_groups:
        group["lr"] = 0.0
    before = net.weight.detach().clone()
    net(torch.ones(1, 3)).sum().backward()
    assert torch.equal(net.weight, before)


def test_what_cannot_be_done_says_so():
    with pytest.raises(ValueError, match="no parameter asks for a gradient"):
        step_in_backward([torch.ones(2)], torch.optim.AdamW)
    with pytest.raises(ValueError, match="step_in_backward with 2 micro-batches"):
        simulate(MODEL, batch=1, tokens=8, micro_batches=2, step_in_backward=True)
