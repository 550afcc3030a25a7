"""A traced step: equal to a real one on the CPU, and to closed forms on CUDA."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from real_steps import Question, build, module_vocab, quiet, random_configs, real_step
from real_steps import StepTracker as RealTracker
from small_models import GPT, TOKENS, VOCAB, Training
from small_models import OPTIMIZERS as SOME_OPTIMIZERS
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils.checkpoint import checkpoint

from memlab import Model, Run, estimate
from memlab.lab.models import TinyGPT, TinyLlama
from memlab.lab.train import one_thread
from memlab.measure import CannotTrace, Trace, trace
from memlab.measure.fake_cuda.guard import device_guard
from memlab.measure.shapes_mode import shapes_mode
from memlab.verdict import DOES_NOT_FIT, TIGHT, room_on

TINY = Model(
    family="llama", layers=3, d_model=64, d_ff=96, heads=4, kv_heads=2, vocab=61, positions=32
)
IDS = torch.zeros(2, 24, dtype=torch.long)


def tiny():
    return TinyLlama(TINY)


def traced(step: Question, backend: str = "cpu") -> Trace:
    with quiet():
        module = build(step)
    ids = torch.randint(module_vocab(module), (step.run.batch, step.run.tokens))
    named = {"input_ids": ids, "labels": ids}
    with quiet():
        return trace(
            module,
            (ids, ids) if step.run.implementation == "memlab" else named,
            Run(backend=backend, optimizer_impl=step.run.optimizer_impl),
            autocast=step.recipe.autocast,
        )


def same(step: Question) -> None:
    real, found = real_step(step), traced(step)
    assert found.peak == real.peak.bytes, step
    assert found.first_step_peak == real.first_peak.bytes, step
    assert found.held == real.held, step
    assert found.peak_event.phase == real.peak.phase
    assert found.rows["activations"] == real.activations
    assert found.rows["logits"] == real.logits
    for term, size in real.resident.items():
        assert found.rows[term] == size, (term, step)
    # The logits have a row of their own here; a real run counts them where autograd put them.
    contents = found.contents()
    spread = contents["logits"] + contents["activations"] + contents["other"]
    expected = real.peak.contents
    assert spread == expected.get("activations", 0) + expected.get("other", 0)
    for term in ("weights", "buffers", "gradients", "optimizer", "inputs"):
        assert contents[term] == expected.get(term, 0), (term, step)


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "step", random_configs(8, seed=11, checkpoints=("none", "block")), ids=lambda s: s.family
)
def test_a_trace_on_the_cpu_equals_a_real_step_of_transformers(step):
    same(step)


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "step",
    random_configs(4, seed=3, implementations=("memlab",), families=("llama", "gpt2")),
    ids=str,
)
def test_a_trace_on_the_cpu_equals_a_real_step_of_memlabs_models(step):
    same(step)


@pytest.mark.sample(4)
@pytest.mark.parametrize("family", ["llama", "gpt2", "qwen3"])
@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("block", ["none", "block"])
def test_transformers_models_take_the_kernels_of_cuda(family, attention, block):
    (step,) = random_configs(1, seed=1, families=(family,))
    step = step.replace(precision="bf16", attention=attention, checkpoint=block, dropout=0.0)
    found = traced(step, "cuda")
    calls = [e.op for e in found.timeline if e.phase == "forward" and "attention" in e.op]
    assert bool(calls) == (attention == "sdpa")
    assert all("_scaled_dot_product_flash_attention" in op for op in calls)
    again = [e.op for e in found.timeline if e.phase == "backward" and e.op in calls]
    assert bool(again) == (block == "block" and attention == "sdpa")


@pytest.mark.parametrize("padding", ["none", "full", "some", "unknown"])
def test_an_attention_mask_counts_where_it_pads(padding):
    (step,) = random_configs(1, seed=1, families=("llama",))
    step = step.replace(precision="bf16", attention="sdpa", checkpoint="none")
    with quiet():
        module = build(step)
    ids = torch.ones(2, 24, dtype=torch.long)
    inputs = {"input_ids": ids, "labels": ids}
    if padding != "none":
        mask = torch.ones(2, 24, dtype=torch.long, device="meta" if padding == "unknown" else None)
        if padding == "some":
            mask[0, 20:] = 0
        inputs["attention_mask"] = mask
    calls = {e.op for e in trace(module, inputs).timeline if "attention.default" in e.op}
    (kernel,) = calls
    masked = padding in ("some", "unknown")
    assert ("efficient" if masked else "flash") in kernel


def test_activations_on_cuda_are_the_blocks_of_the_closed_form():
    L, T, B, D, N, K, F_, V = 3, 24, 2, 64, 4, 2, 96, 61
    step = trace(lambda: tiny().to(torch.bfloat16), (IDS, IDS))
    block = 12 * T * B * D + 4 * T * B * D * K // N + 8 * T * B * F_ + 4 * N * B * T + 8 * T * B
    tables = 2 * 2 * TINY.positions * D // N  # kept by every rotation, and no activations
    norm = 2 * (2 * T * B * D) + 4 * T * B  # the final one: its input, its output, and rstd
    loss = 8 * T * B + 4  # the shifted labels, and how many there are
    contents = step.contents("after_forward")
    # Each block's flash attention also keeps 24 bytes of random state.
    assert contents["activations"] == L * (block + 24) + norm + loss
    assert contents["logits"] == 4 * T * B * V  # the logarithm of softmax, in fp32
    assert contents["buffers"] == tables
    assert contents["other"] == 4  # the loss


def test_the_ledger_adds_up_and_prints():
    step = trace(tiny, (IDS, IDS), title="three layers")
    assert step.ledger.total("traced") == step.peak == step.peak_event.total
    assert step.ledger.columns == ("traced",)
    derived = estimate(TINY, "fp32")
    for term in ("weights", "gradients", "optimizer"):
        assert step.ledger[term].traced == derived[term].derived
    assert step.held["between_steps"] < step.held["after_backward"] < step.held["after_forward"]
    assert step.first_step_peak <= step.peak
    words, page = str(step), step._repr_html_()
    for part in ("three layers", "peak of the first step", "after forward", f"{step.peak:,}"):
        assert part in words and part in page
    assert json.loads(json.dumps(step.to_dict()))["peak"]["bytes"] == step.peak
    assert "<svg" in step.plot()._repr_svg_()


def test_contents_at_every_moment():
    step = trace(tiny, (IDS, IDS))
    for moment, size in step.held.items():
        assert sum(step.contents(moment).values()) == size
    event = step.timeline[len(step.timeline) // 2]
    assert sum(step.contents(event.index).values()) == event.total
    with pytest.raises(
        ValueError, match="unknown moment 'after_lunch'; known: peak, after_forward"
    ):
        step.contents("after_lunch")


def test_it_fits_or_not():
    step = trace(tiny, (IDS, IDS))
    assert step.reserved() >= step.peak
    assert step.fits(step.reserved(), spare=0) and not step.fits(step.peak - 1, spare=0)
    assert step.fits("24 GiB") and not step.fits("1 KiB")
    # What a CUDA context and cuBLAS take is left free, as `memlab fit` leaves it.
    beside = room_on(0).beside
    assert step.verdict(step.peak + beside).word == TIGHT
    assert step.verdict(step.peak + beside - 1).word == DOES_NOT_FIT
    assert step.fits("RTX 4090") and step.fits("h100")
    with pytest.raises(ValueError, match="unknown device 'RTX 4099'; did you mean RTX 4090"):
        step.fits("RTX 4099")


def test_a_real_module_is_only_read():
    module = tiny()
    module.layers[0].attention.q.weight.requires_grad_(False)
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    addresses = [p.data_ptr() for p in module.parameters()]
    step = trace(module, (IDS, IDS))
    assert [p.data_ptr() for p in module.parameters()] == addresses
    assert all(torch.equal(before[name], t) for name, t in module.state_dict().items())
    assert all(p.grad is None and not p._backward_hooks for p in module.parameters())
    frozen = 4 * module.layers[0].attention.q.weight.numel()
    assert step.ledger["weights"].traced - step.ledger["gradients"].traced == frozen
    assert isinstance(module(IDS, IDS).item(), float)


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_tied_weights_stay_tied_and_count_once(device):
    tied = Model(family="gpt2", layers=1, d_model=32, d_ff=64, heads=2, vocab=51, positions=24)
    with torch.device(device):
        module = TinyGPT(tied)
    assert module.embedding.weight is module.lm_head.weight
    step = trace(module, (IDS, IDS))
    held = step.contents("after_backward")
    assert held["weights"] == held["gradients"] == 4 * tied.parameter_count


def test_views_of_one_storage_stay_views():
    class Flat(nn.Module):
        def __init__(self):
            super().__init__()
            flat = torch.randn(48)
            self.a = nn.Parameter(flat[:32].view(8, 4))
            self.b = nn.Parameter(flat[32:].view(4, 4))

        def forward(self, x):
            return (x @ self.a @ self.b).sum()

    step = trace(Flat(), torch.ones(3, 8))
    assert step.ledger["weights"].traced == 4 * 48


def test_what_a_step_may_be():
    whole = trace(tiny, (IDS, IDS))
    assert trace(tiny, {"ids_BT": IDS, "labels_BT": IDS}).peak == whole.peak

    def copies(module):
        there = next(module.parameters()).device
        return IDS.to(there, copy=True), IDS.to(there, copy=True)

    once = trace(tiny, lambda module: module(*copies(module)))
    assert once.peak == whole.peak - IDS.nbytes  # those that are copied stay on the host

    def two_micro_batches(module):
        for _ in range(2):
            (module(*copies(module)) / 2).backward()

    both = trace(tiny, two_micro_batches)
    assert both.held["between_steps"] == once.held["between_steps"]
    assert both.rows["gradients"] == whole.rows["gradients"]
    phases = list(dict.fromkeys(event.phase for event in both.timeline))
    assert phases == ["forward", "loss", "backward", "optimizer", "zero_grad"]
    # The first micro-batch ends where its backward begins: the labels' copy, and the gradient 1.
    assert both.held["after_forward"] - once.held["after_forward"] == 4
    by_hand = trace(tiny, IDS, loss=lambda logits: logits.float().logsumexp(-1).mean())
    assert by_hand.ledger["weights"] == whole.ledger["weights"]
    assert trace(tiny, (IDS, IDS), optimizer=None).contents()["optimizer"] == 0


def test_optimizers_as_on_the_backend():
    weights = 4 * TINY.parameter_count

    def temporary(**options):
        run = Run(backend=options.pop("backend", "cuda"))
        step = trace(tiny, (IDS[:1, :2], IDS[:1, :2]), run, **options)
        held = step.contents("between_steps")
        assert step.peak_event.phase == "optimizer"
        return step.peak - sum(held.values()) - weights

    loop = temporary(backend="cpu")
    assert temporary(backend="cuda") == weights > loop
    assert temporary(optimizer=lambda p: torch.optim.AdamW(p, foreach=False)) == loop
    assert temporary(backend="cpu", optimizer=lambda p: torch.optim.AdamW(p, foreach=True)) > loop
    sgd = trace(tiny, (IDS, IDS), optimizer=lambda p: torch.optim.SGD(p, momentum=0.9))
    assert sgd.contents()["optimizer"] == weights


@pytest.mark.parametrize(
    "family, name",
    [("llama", "muon"), ("gpt", "adafactor"), ("conv", "amsgrad"), ("mlp", "adafactor")],
)
def test_other_models_and_optimizers_equal_a_real_run(family, name):
    real = Training(family, "bf16", name)
    with one_thread(), RealTracker() as tracker:
        tracker.label([real.model, real.optimizer])
        tracker.label(real.batch, "inputs")
        real.step()
        tracker.reset_peak()
        real.step()
    again = Training(family, "bf16", name)
    found = trace(
        again.model,
        tuple(again.batch),
        Run.cpu(),
        optimizer=lambda parameters: SOME_OPTIMIZERS[name](list(parameters)),
    )
    assert found.peak == tracker.peak
    assert found.held["between_steps"] == tracker.current


@pytest.mark.parametrize("format", ["bf16", "autocast"])
def test_micro_batches_and_clipping_equal_a_real_run(format):
    def accumulate(training, model):
        for _ in range(3):
            with training.amp():
                loss = model(*training.batch)
            (loss / 3).backward()
            del loss
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)

    real = Training("gpt", format, "adamw-loop")
    with one_thread(), RealTracker() as tracker:
        tracker.label([real.model, real.optimizer])
        tracker.label(real.batch, "inputs")
        for _ in range(2):
            tracker.reset_peak()
            accumulate(real, real.model)
            real.optimizer.step()
            real.model.zero_grad()
    again = Training("gpt", format, "adamw-loop")
    found = trace(
        again.model,
        lambda model: accumulate(again, model),
        Run.cpu(),
        optimizer=lambda parameters: torch.optim.AdamW(parameters, foreach=False),
    )
    assert found.peak == tracker.peak


def test_an_optimizer_of_ones_own_may_branch():
    class Careful(torch.optim.SGD):
        def step(self):
            if torch.stack([p.grad.norm() for p in self.param_groups[0]["params"]]).any():
                super().step()

    found = trace(tiny, (IDS, IDS), optimizer=lambda p: Careful(p, 1e-3))
    assert re.search(r"assumed 2 × any\(\) of .*: False   test_trace.py:\d+", found.notes[0])


def test_dropout_masks_have_one_byte_on_cuda():
    class Drop(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(8, 8)

        def forward(self, x):
            return F.dropout(self.linear(x), 0.5).sum()

    x = torch.ones(100, 8)
    cpu, cuda = (trace(Drop(), x, Run(backend=b)).held["after_forward"] for b in ("cpu", "cuda"))
    assert cpu - cuda == 3 * 800


def test_checkpointed_regions_are_computed_again():
    class Blocks(nn.Module):
        def __init__(self, again):
            super().__init__()
            self.again = again
            self.layers = nn.ModuleList(
                nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 16)) for _ in range(4)
            )

        def forward(self, x):
            for layer in self.layers:
                x = checkpoint(layer, x, use_reentrant=False) if self.again else layer(x)
            return x.sum()

    x = torch.ones(50, 16)
    plain, again = (trace(lambda r=r: Blocks(r), x) for r in (False, True))
    assert again.contents("after_forward")["activations"] == 3 * 4 * x.numel()
    assert again.peak < plain.peak


class Branch(nn.Module):
    def __init__(self, operation):
        super().__init__()
        self.linear = nn.Linear(8, 8)
        self.operation = operation

    def forward(self, x):
        return self.operation(self.linear(x)).sum()


@torch.library.custom_op("memlab_test::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2


OLD = torch.library.Library("memlab_old", "DEF")
OLD.define("same(Tensor x) -> Tensor")
OLD.impl("same", lambda x: x.clone(), "CPU")

ASSUMED = {
    "a number that is not known: False": lambda x: x if x.sum() > 0 else -x,
    "a mask that is not known: all of 16": lambda x: x[x > 0],
    "values that are not known: all different": lambda x: x + x.detach().unique().sum(),
}


@pytest.mark.parametrize("backend", ["cpu", "cuda"])
@pytest.mark.parametrize("what", ASSUMED)
def test_what_values_decide_is_assumed_and_noted_with_its_line(what, backend):
    found = trace(Branch(ASSUMED[what]), torch.ones(2, 8), Run(backend=backend))
    number = ASSUMED[what].__code__.co_firstlineno
    assert found.notes[0].startswith(f"assumed 2 × {what}   test_trace.py:{number} ")


@pytest.mark.parametrize("backend", ["cpu", "cuda"])
def test_whole_numbers_that_were_given_decide(backend):
    """A mask of padding keeps the rows that it says, and nothing is assumed."""

    class Rows(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(8, 8)

        def forward(self, x, mask):
            assert not mask.all()
            return self.linear(x[mask]).sum()

    mask = torch.arange(20) < 5
    found = trace(Rows(), (torch.ones(20, 8), mask), Run(backend=backend))
    assert (5, 8) in {record.shape for record in found.tracker.records.values()}
    assert found.notes == ()


def test_inputs_are_only_read():
    class Writes(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(8, 8)

        def forward(self, x, labels):
            labels.fill_(-100)
            return self.linear(x).sum()

    labels = torch.arange(5)
    for backend in ("cpu", "cuda"):
        trace(Writes(), (torch.ones(20, 8), labels), Run(backend=backend))
        assert labels.tolist() == [0, 1, 2, 3, 4]


UNTRACEABLE = {
    "memlab_test::twice": lambda x: twice(x),
    "memlab_old.same.default": lambda x: torch.ops.memlab_old.same(x),
    "cuda": lambda x: x.to("cuda"),
    "cuda:0": lambda x: x + torch.ones(8, device="cuda:0"),
}
ON_CUDA = {
    "memlab_test::twice": UNTRACEABLE["memlab_test::twice"],
    "torch.ones(8)": lambda x: x + torch.ones(8),
}


def refused(operation, name, run):
    with pytest.raises(CannotTrace, match=r"cannot trace .* at ") as caught:
        trace(Branch(operation), torch.ones(2, 8), run)
    error = caught.value
    assert name in error.operation
    number = operation.__code__.co_firstlineno
    assert re.search(rf"test_trace\.py:{number}, in <lambda>: ", error.line), error.line
    assert len(str(error).splitlines()) == 2


@pytest.mark.parametrize("name", UNTRACEABLE)
def test_what_cannot_be_traced_is_named_with_its_line(name):
    refused(UNTRACEABLE[name], name, Run.cpu())


@pytest.mark.parametrize("name", ["cuda", "cuda:0"])
def test_a_card_is_refused_after_a_rehearsal_too(name):
    """A rehearsal leaves torch able to make tensors without values on a card."""
    device_guard()
    refused(UNTRACEABLE[name], name, Run.cpu())


@pytest.mark.parametrize("name", ON_CUDA)
def test_what_cannot_be_traced_on_a_card_is_named_with_its_line(name):
    refused(ON_CUDA[name], name, Run())


@pytest.mark.parametrize("name", ["cuda", "cuda:0"])
def test_a_card_is_there_where_it_is_traced(name):
    assert trace(Branch(UNTRACEABLE[name]), torch.ones(2, 8)).notes == ()


def test_other_errors_pass_as_they_are():
    with pytest.raises(RuntimeError, match="reduction dim") as caught:
        trace(Branch(lambda x: x @ x.new_ones(3, 3)), torch.ones(2, 8))
    assert not isinstance(caught.value, CannotTrace)


@pytest.mark.parametrize(
    "arguments, error, words",
    [
        ({"run": "cpu"}, TypeError, "run='cpu' is a str; a memlab.Run is needed"),
        ({"steps": 0}, ValueError, "steps=0; at least 1"),
        (
            {"run": Run(compile="inductor"), "assume": "routing=even"},
            ValueError,
            "assume='routing=even': a compiled step is traced without assumptions",
        ),
        ({"autocast": "fp8"}, ValueError, "unknown autocast='fp8'; known: bf16, fp16"),
        ({"run": Run(attention="eager")}, ValueError, "attention='eager': a module says that"),
        ({"optimizer": 3}, TypeError, "optimizer is a int; a function"),
        ({"optimizer": lambda p: 3}, TypeError, "returned a int; an Optimizer"),
        ({"model": 3}, TypeError, "model is a int; a torch.nn.Module"),
        ({"model": lambda: 3}, TypeError, "returned a int; a torch.nn.Module"),
        ({"inputs": IDS}, TypeError, r"tensor of shape \(2, 24, 61\) where a loss"),
        ({"loss": lambda out: None}, TypeError, "NoneType where a loss"),
        ({"inputs": lambda m: torch.ones(())}, ValueError, "every parameter frozen"),
    ],
)
def test_wrong_arguments_are_named(arguments, error, words):
    given = {"model": tiny, "inputs": (IDS, IDS), **arguments}
    with pytest.raises(error, match=words):
        trace(**given)


def test_an_optimizer_of_real_parameters_is_refused():
    module = tiny()
    with pytest.raises(TypeError, match="optimizer is one AdamW, which belongs to real parameters"):
        trace(module, (IDS, IDS), optimizer=torch.optim.AdamW(module.parameters()))


def test_a_module_with_a_mask_and_a_tie_of_its_own():
    ids = torch.randint(VOCAB, (2, TOKENS))
    cuda, cpu = (trace(GPT(), (ids, ids), Run(backend=backend)) for backend in ("cuda", "cpu"))
    assert cuda.ledger["weights"] == cpu.ledger["weights"]
    assert cuda.held["after_forward"] < cpu.held["after_forward"]


EIGHT = """
import re, torch
from memlab import Model
from memlab.lab.models import TinyLlama
from memlab.measure import trace
ids = torch.empty(1, 4096, dtype=torch.long, device="meta")
model = Model.preset("llama-3-8b")
step = trace(lambda: TinyLlama(model).to(torch.bfloat16), (ids, ids))
# Not getrusage: its maximum begins with that of the process that forked this one.
high = re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1]
print(step.peak, step.moment, step.op, high)
"""


@pytest.mark.deep
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc to read memory from")
def test_llama_3_8b_is_traced_in_less_than_a_gibibyte():
    out = subprocess.run([sys.executable, "-c", EIGHT], capture_output=True, text=True, check=True)
    peak, *moment, kib = out.stdout.split()
    P = Model.preset("llama-3-8b").parameter_count
    # Weights, gradients, two moments and foreach's square roots, 2 B each; 291 step counters, the
    # rotary tables, the ids.
    assert int(peak) == 5 * 2 * P + 291 * 4 + 2 * 2 * 8192 * 128 + 8 * 4096
    assert moment == ["optimizer", "_foreach_sqrt"]
    assert int(kib) * 1024 < 2**30


@pytest.mark.parametrize("backend", ["cpu", "cuda"])
def test_shapes_found_the_short_way_are_those_of_torchs_own_mode(backend):
    """Views, sums in place, parts of a tuple, numbers: every event is the same."""

    def events():
        with torch.device("meta"):
            module = tiny()
        found = trace(module, (IDS, IDS), Run(backend=backend))
        return [(e.kind, e.bytes, e.total, e.op, e.phase) for e in found.tracker.timeline]

    short = events()
    with FakeTensorMode(allow_non_fake_inputs=True):
        assert events() == short


def test_what_has_been_seen_is_made_again_without_torchs_description(monkeypatch):
    described = []
    own = FakeTensorMode._cache_key
    monkeypatch.setattr(
        FakeTensorMode, "_cache_key", lambda *given: described.append(given[2]) or own(*given)
    )
    with shapes_mode():
        x = torch.ones(4, 6)
        for _ in range(5):
            y = x.t() + 1
            assert (y.shape, y.stride(), y.storage_offset()) == ((6, 4), (1, 6), 0)
            assert x.t().untyped_storage()._cdata == x.untyped_storage()._cdata
    assert 0 < described.count(torch.ops.aten.add.Tensor) <= 2
