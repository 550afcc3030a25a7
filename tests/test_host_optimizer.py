"""torchao's CPUOffloadOptimizer, described and run: its own code, with the host told apart."""

import types
from contextlib import nullcontext

import pytest
import torch
from torch import nn
from torchao.optim import cpu_offload

from memlab import Model, Run
from memlab.lab import text
from memlab.lab.models import TinyLlama
from memlab.lab.tracked_steps import watch
from memlab.step.optimizers.on_host import SMALLEST_MOVED
from memlab.step.simulate import simulate

LLAMA = Model.preset("tiny-llama")
RUN = Run.cpu(batch=4, tokens=64, implementation="memlab")


class Stream:
    """A stream of a machine that has none: all that it is given is done at once."""

    def wait_stream(self, other):
        pass

    def synchronize(self):
        pass

    def record_event(self):
        return self


class OnThisMachine(types.ModuleType):
    """torch as torchao's file sees it: CUDA's streams are there, and pinned memory is memory."""

    def __init__(self):
        super().__init__("torch")
        self.cuda = types.SimpleNamespace(
            Stream=Stream, current_stream=Stream, stream=lambda one: nullcontext()
        )

    def __getattr__(self, name):
        return getattr(torch, name)

    def empty_like(self, tensor, device=None, pin_memory=False):
        return torch.empty_like(tensor)


class Around(torch.optim.Optimizer):
    """With the state and the hooks of an optimizer, which torchao's class does not make."""

    def __init__(self, parameters, **options):
        parameters = list(parameters)
        super().__init__(parameters, {})
        self.inner = cpu_offload.CPUOffloadOptimizer(parameters, **options)

    def step(self, closure=None):
        self.inner.step()

    def zero_grad(self, set_to_none=True):
        self.inner.zero_grad()


@pytest.fixture(params=[False, True])
def steps(request, monkeypatch):
    """Two real steps, whether gradients leave too, and the bytes that a host has."""
    monkeypatch.setattr(cpu_offload, "torch", OnThisMachine())
    monkeypatch.setattr(cpu_offload, "get_available_devices", lambda: ["cpu", "cuda"])
    # A gradient that leaves is marked for a stream, which a CPU's tensor cannot be.
    monkeypatch.setattr(torch.Tensor, "record_stream", lambda self, stream: None)
    torch.manual_seed(0)
    net = TinyLlama(LLAMA)
    ran = watch(
        net,
        text.batches(4, 64, steps=3),
        optimizer=Around,
        offload_gradients=request.param,
    )
    moved = [p for p in net.parameters() if p.numel() >= SMALLEST_MOVED]
    # Of each: the weights, their gradient, two states, and the step's number.
    host = sum(4 * p.nbytes + 4 for p in moved)
    assert isinstance(net, nn.Module) and 0 < len(moved) < len(list(net.parameters()))
    return ran, request.param, host


def test_the_device_holds_what_is_described(steps):
    ran, gradients, host = steps
    off = ("optimizer", "gradients") if gradients else ("optimizer",)
    step = simulate(LLAMA, "fp32", RUN.replace(offload=off))
    # No tolerance: what torchao has on the host is as large in every moment of a later step.
    assert ran.peaks[-1] - host == step.peak.bytes
    plain = simulate(LLAMA, "fp32", RUN.replace(optimizer_impl="fused"))
    assert step.peak.bytes < plain.peak.bytes
    small = sum(t.numel * t.copies for t in LLAMA.tensors() if t.numel < SMALLEST_MOVED)
    counters = 4 * sum(t.copies for t in LLAMA.tensors() if t.numel < SMALLEST_MOVED)
    assert step.rows["optimizer"] == 2 * 4 * small + counters


def test_gradients_that_leave_are_never_all_there():
    peaks = [
        simulate(LLAMA, "fp32", RUN.replace(batch=1, tokens=8, offload=off)).peak.bytes
        for off in (("optimizer",), ("optimizer", "gradients"))
    ]
    assert peaks[1] < peaks[0]


def test_another_optimizer_is_refused_by_name():
    with pytest.raises(ValueError, match="offload of optimizer is described for adamw, not lion"):
        simulate(LLAMA, "lion", RUN.replace(offload=("optimizer",)))
