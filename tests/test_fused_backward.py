"""The step inside backward: the same weights, no gradients left, and the peak that is derived."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from real_steps import FAMILIES, build, deep, module_vocab, quiet, random_configs

from memlab import Model, Run
from memlab.lab import tracked_steps
from memlab.lab.fused_backward import step_in_backward
from memlab.lab.subject import subject
from memlab.lab.text import batches
from memlab.lab.tracked_steps import watch
from memlab.measure import Tracker, trace
from memlab.measure.trace import LOOPS
from memlab.step import simulate

MODEL = Model(layers=6, d_model=32, d_ff=48, heads=4, kv_heads=2, vocab=256, positions=32)


def module(model, program="memlab", **how):
    torch.manual_seed(0)
    return subject(
        model,
        "fp32",
        Run(implementation=program, **how),
    )


def inside(**how):
    return lambda parameters: step_in_backward(parameters, lambda p: torch.optim.AdamW(p, **how))


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("program", ["memlab", "transformers"])
def test_the_peak_of_each_step_is_the_simulated_one(program, tied, name):
    model = MODEL.replace(tied=tied)
    run = watch(module(model, program), batches(2, 16, steps=2), optimizer=inside(**LOOPS[name]))
    how = dict(batch=2, tokens=16, implementation=program, optimizer_impl=name)
    step = simulate(model, "fp32", Run.cpu(step_in_backward=True, **how))
    assert run.peaks == [step.peak.first_step_bytes, step.peak.bytes]
    plain = simulate(model, "fp32", Run.cpu(**how))
    assert plain.held["after_backward"] - step.held["after_backward"] == plain.rows["gradients"]
    assert run.hills()["optimizer"].total() == step.held["after_backward"]
    assert step.rows["gradients"] == 0


@pytest.mark.parametrize("again", [False, True])
def test_traced_with_and_without_checkpoints(again):
    ids = torch.zeros(2, 16, dtype=torch.long)
    how = {"checkpoint": "block" if again else "none"}
    seen = trace(lambda: module(MODEL, **how), (ids, ids), Run.cpu(), optimizer=inside())
    run = Run.cpu(batch=2, tokens=16, implementation="memlab", step_in_backward=True, **how)
    step = simulate(MODEL, "fp32", run)
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
        simulate(MODEL, "fp32", Run.cpu(batch=1, tokens=8, micro_batches=2, step_in_backward=True))


# Where layers have biases, or norms have them, several parameters wait at the same time.
WITH_BIASES = [
    step.replace(precision="fp32", batch=2, tokens=9)
    for step in random_configs(deep(9), 71, checkpoints=("none", "block"))
]


def fused(step, **more):
    return simulate(step.model, step.recipe, step.run.replace(step_in_backward=True), **more)


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    "step", WITH_BIASES, ids=lambda step: f"{step.family} {step.run.checkpoint}"
)
def test_parameters_are_updated_in_torchs_order(monkeypatch, step):
    """Every allocation of the second step; gradients that meet as a dispatch mode sees them."""
    monkeypatch.setattr(tracked_steps, "StepTracker", Tracker)
    with quiet():
        module = build(step)
    vocab = module_vocab(module)
    passages = (torch.randint(vocab, (step.run.batch, step.run.tokens)) for _ in range(2))
    run = watch(module, passages, optimizer=inside(**LOOPS[step.run.optimizer_loop]))
    found = fused(step, in_place=False, every_layer=True)
    log = found.log
    told = log.events[log.marks["second.forward"] : log.marks["second.end"]]
    real = run.tracker.timeline[run.starts[1] :]
    assert [(size, total) for _, size, total in told if size > 0] == [
        (event.bytes, event.total) for event in real if event.kind == "alloc" and event.bytes
    ]


def told(family):
    """What one call says: the peaks, and every event in order, as one short text."""
    (step,) = random_configs(1, 72, families=(family,))
    more = {"attention_bias": True} if family in ("llama", "qwen3", "gemma", "gpt_neox") else {}
    more |= {"n_layer" if family == "gpt2" else "num_hidden_layers": 2}
    step = step.replace(config=step.config | more, precision="fp32")
    found = fused(step)
    events = [(record and record.op, size, total) for record, size, total in found.log.events]
    digest = hashlib.sha256(repr(events).encode()).hexdigest()[:16]
    return f"{family} {found.peak.first_step_bytes} {found.peak.bytes} {digest}"


@pytest.mark.sample(2)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_simulation_depends_on_its_arguments_alone(family):
    keep = []  # what lies where in memory must not matter
    seen = set()
    for i in range(200):
        keep.append([object()] * (37 * i % 101))
        seen.add(told(family))
    assert len(seen) == 1


def test_a_simulation_is_the_same_in_every_process():
    code = "from test_fused_backward import *; print(*map(told, FAMILIES), sep='\\n')"
    runs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1")
    }
    assert len(runs) == 1
    assert runs.pop().splitlines() == [told(family) for family in FAMILIES]
