"""The chunked losses of torch and of Liger inside a step: real steps, and their own source."""

import inspect
import os
import textwrap

import pytest
import torch
import torch.nn.functional as F
from compare import allocates_as_real, is_real
from real_steps import deep, random_configs
from torch._subclasses.fake_tensor import FakeTensorMode

from memlab import Model, Run, Sharding, trace
from memlab.adapters import Lora
from memlab.lab.library_loss import library_loss, opened
from memlab.lab.models.common import next_tokens
from memlab.measure import Tracker
from memlab.step import simulate
from memlab.step.loops.library_losses import library_loss as simulated_loss
from memlab.step.loops.library_losses import liger, linear_cross_entropy
from memlab.step.ops import Ops
from memlab.terms import linear_cross_entropy as terms

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
NEEDS = pytest.mark.skipif(
    not hasattr(torch.nn, "LinearCrossEntropyOptions"), reason="torch below 2.13 has no such loss"
)
STEPS = [
    s.replace(loss="linear_cross_entropy", micro_batches=1 + i % 2)
    for i, s in enumerate(random_configs(deep(6), 85, dropouts=(0.0,)))
]


@pytest.mark.sample(4)
@NEEDS
@pytest.mark.parametrize("step", STEPS, ids=str)
def test_every_figure_is_the_real_one(step):
    real, _ = is_real(step)


@pytest.mark.sample(2)
@NEEDS
@pytest.mark.parametrize("step", STEPS[1::2], ids=str)
def test_every_allocation_is_the_real_one(step):
    allocates_as_real(step)


@NEEDS
def test_a_frozen_head_gets_no_gradient():
    step = STEPS[1].replace(lora=Lora(4, targets=("q", "v")), micro_batches=1)
    allocates_as_real(step)


@NEEDS
def test_a_trace_sees_inside():
    model, run = Model.preset("tiny-llama"), Run.cpu(tokens=32, loss="linear_cross_entropy")
    assert trace(model, "bf16", run).peak == simulate(model, "bf16", run).peak.bytes
    with pytest.raises(ValueError, match="cannot be traced for backend='cuda'"):
        trace(model, "bf16", run.replace(backend="cuda"))


@NEEDS
@pytest.mark.parametrize("format", DTYPES)
def test_opened_it_is_the_same_loss_and_asks_for_the_same_bytes(format):
    """Closed, torch's profiler alone sees what the operator allocates."""
    ids = torch.randint(300, (2, 20))
    found, peaks = [], []
    for name in ("closed", "opened"):
        torch.manual_seed(0)
        x = torch.randn(2, 20, 16).to(DTYPES[format]).requires_grad_()
        head = torch.randn(300, 16).to(DTYPES[format]).requires_grad_()
        with torch.profiler.profile(profile_memory=True) as profile:
            if name == "opened":
                loss = library_loss("linear_cross_entropy", x, head, ids)
            else:
                loss = F.linear_cross_entropy(
                    x.flatten(0, 1),
                    head,
                    next_tokens(ids).flatten(),
                    options=torch.nn.LinearCrossEntropyOptions(),
                )
            loss.backward()
        found.append((loss, x.grad, head.grad))
        peaks.append(_asked_for(profile))
    for one, other in zip(*found, strict=True):
        assert torch.equal(one, other)
    assert peaks[0] == peaks[1] and len(peaks[0]) > 30


def _asked_for(profile):
    """The bytes of each allocation and free on the CPU, in order; none of a few numbers."""
    events = profile.profiler.kineto_results.events()
    sizes = [event.nbytes() for event in events if event.name() == "[memory]"]
    return [size for size in sizes if abs(size) > 64]


def _on_a_gpu(function, changes):
    """A function of a library with lines of its source turned, so that a CPU counts as a GPU."""
    source = textwrap.dedent(inspect.getsource(function))
    for line, other in changes.items():
        assert line in source, f"the library has no {line!r} any more"
        source = source.replace(line, other)
    space = dict(function.__globals__)
    exec("from __future__ import annotations\n" + source, space)
    return space[function.__name__]


def _simulated(loss, R, V, D, format, trained):
    f = Ops(backend="cuda")
    x = f.new("x", (R, D), format)
    f.require_grad(x)
    f.frozen = () if trained else ("lm_head",)
    head = f.parameter("lm_head", (V, D), format)
    labels = f.new("labels", (R,), "int64")
    start, before = len(f.log.events), f.log.events[-1][2]
    loss(f, x, head, labels)
    return [(size, total - before) for _, size, total in f.log.events[start:] if size > 0]


def _allocated(tracker, before):
    return [(e.bytes, e.total - before) for e in tracker.timeline if e.kind == "alloc" and e.bytes]


SHAPES = [(300, 1000, 24), (30, 10, 24), (30, 20, 24), (7, 300, 24), (1, 64, 8)]


@pytest.mark.sample(9)
@NEEDS
@pytest.mark.parametrize("trained", [True, False])
@pytest.mark.parametrize("format", DTYPES)
@pytest.mark.parametrize(("R", "V", "D"), SHAPES)
def test_on_a_gpu_it_is_torchs_own_source(monkeypatch, R, V, D, format, trained):
    from torch.nn.modules import linear_cross_entropy as theirs

    context = theirs._ChunkContext
    turned = _on_a_gpu(
        context.build.__func__, {"@classmethod\n": "", 'device.type == "cuda"': "True"}
    )
    monkeypatch.setattr(context, "build", classmethod(turned))
    monkeypatch.setattr(
        context, "mm", lambda self, a, b, *, out: None
    )  # into a buffer that is there
    chosen = torch.nn.LinearCrossEntropyOptions(acc_dtype=torch.float32)._adjust(
        R, D, V, DTYPES[format], torch.device("cuda")
    )
    told = {"vocab": V, "d_model": D, "format": format, "backend": "cuda"}
    assert chosen.acc_policy == "compact"
    assert chosen.batch_chunk_size == terms.chunk_rows(R, **told)
    with FakeTensorMode(), torch.no_grad(), Tracker() as tracker:
        x, head = (torch.empty(n, D, dtype=DTYPES[format]) for n in (R, V))
        labels = torch.zeros(R, dtype=torch.int64)
        before = tracker.current
        made = theirs._linear_cross_entropy_batch_chunked_accumulator(
            *(x, head, labels, None, None, "mean", -100, 0.0, chosen.batch_chunk_size),
            *("compact", torch.float32, True, trained, False),
        )
    del made
    real = _allocated(tracker, before)[3:]
    assert _simulated(linear_cross_entropy, R, V, D, format, trained) == real


@pytest.mark.parametrize("trained", [True, False])
@pytest.mark.parametrize("format", DTYPES)
@pytest.mark.parametrize(("R", "V", "D"), [(40, 100, 24), (7, 300, 24)])
def test_ligers_is_its_own_source(monkeypatch, R, V, D, format, trained):
    """With Liger Kernel, Triton and TRITON_INTERPRET=1: Triton runs the kernel on a CPU then."""
    if os.environ.get("TRITON_INTERPRET") != "1":
        pytest.skip("TRITON_INTERPRET=1 is not set")
    pytest.importorskip("triton")
    theirs = pytest.importorskip("liger_kernel.ops.fused_linear_cross_entropy")
    capable = "torch.cuda.get_device_capability(grad_weight.device)[0] >= 8"
    theirs._can_use_mm_out = lambda x, weight: x.dtype == weight.dtype
    turned = _on_a_gpu(
        theirs.fused_linear_cross_entropy_forward,
        {'grad_weight.device.type == "cuda"': "True", capable: "True"},
    )
    monkeypatch.setattr(theirs, "fused_linear_cross_entropy_forward", turned)
    torch.manual_seed(0)
    x, head = (torch.randn(n, D).mul_(0.1).to(DTYPES[format]) for n in (R, V))
    labels = torch.randint(V, (R,))
    x.requires_grad_(), head.requires_grad_(trained)
    apply = theirs.LigerFusedLinearCrossEntropyFunction.apply
    with Tracker() as tracker:
        tracker.label([x, head, labels], "inputs")
        before = tracker.current
        loss = apply(x, head, labels)[0]
    real = _allocated(tracker, before)
    derived = _simulated(liger, R, V, D, format, trained)
    # The interpreter holds the logits, its last argument, on to the very last number: the loss.
    assert derived[:-1] == real[:-1] and derived[-1][0] == real[-1][0]
    assert max(total for _, total in derived) == max(total for _, total in real[:-1])
    loss.backward()
    torch.testing.assert_close(
        loss.detach(), F.cross_entropy((x @ head.T).float(), labels), atol=2e-2, rtol=2e-2
    )


def test_liger_counted_by_hand():
    """Both gradients, one chunk of 32 of the 4,096 rows in bf16, a loss and a mask a row."""
    model, R = Model.preset("qwen3-0.6b"), 4096
    V, D = model.vocab, model.d_model
    assert terms.liger_rows(R, vocab=V, d_model=D) == 32
    events = _simulated(liger, R, V, D, "bf16", True)
    assert max(total for _, total in events) == 2 * (R + V) * D + 32 * V * 2 + (4 + 1) * R
    run = Run(tokens=R, optimizer_impl="fused")
    peaks = {
        loss: simulate(model, "bf16", run.replace(loss=loss)).peak.bytes
        for loss in ("plain", "chunked", "linear_cross_entropy", "liger")
    }
    assert peaks["liger"] < peaks["chunked"] < peaks["plain"]
    assert peaks["liger"] <= peaks["linear_cross_entropy"] < peaks["plain"]


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"loss": "liger", "backend": "cpu"}, "loss='liger': its kernels are Triton's, for a GPU"),
        ({"loss": "liger", "implementation": "memlab"}, "is described for models of transformers"),
        (
            {"loss": "liger", "loop": "trainer"},
            "loss='liger' is described with loop='plain' on one",
        ),
        (
            {"loss": "liger", "loop": "trainer", "devices": Sharding(data=8, zero=2)},
            "this is loop='trainer', on 8 devices",
        ),
        ({"loss": "linear_cross_entropy", "loop": "dpo"}, "its loss is the fused head's"),
        ({"loss": "linear_cross_entropy", "texts": "padded"}, "texts='padded' with loss='linear_c"),
        ({"loss": "linear_cross_entropy", "loss_chunks": 4}, "loss_chunks=4 without loss='chunked"),
    ],
)
def test_what_is_not_described_is_named(changes, words):
    with pytest.raises(ValueError, match=words):
        Run(batch=2, tokens=8, **changes)


def test_two_formats_are_refused_as_by_the_library():
    f = Ops(autocast="bf16", backend="cuda")
    x, head = f.new("x", (1, 8, 16), "bf16"), f.parameter("lm_head", (32, 16), "fp32")
    with pytest.raises(ValueError, match="the head's input is bf16 here and its weight fp32"):
        simulated_loss(f, "liger", x, head)
    with pytest.raises(ValueError, match="does not run here"):
        library_loss("liger", *(torch.ones(1),) * 3)


@NEEDS
def test_what_opens_the_operator_closes_it_again():
    from torch.nn.modules import linear_cross_entropy as theirs

    before = theirs._linear_cross_entropy_batch_chunked
    with pytest.raises(KeyError), opened():
        assert theirs._linear_cross_entropy_batch_chunked is not before
        raise KeyError
    assert theirs._linear_cross_entropy_batch_chunked is before
