"""The rebuilt NVFP4 trainer: its switches to the byte, its gradients, its codes, its guard."""

import sys

import pytest
import torch
from torch import nn

from memlab import Model
from memlab.cases import nvfp4_program as program
from memlab.cases.memory_guard import guard, run_guarded
from memlab.cases.nvfp4_ledger import (
    combinations,
    fullest,
    in_step,
    ledger,
    resident,
    rounded_values,
)
from memlab.cases.nvfp4_traced import end_of_forward
from memlab.cases.nvfp4_trainer import Settings, Trainer, export, load, run
from memlab.cases.packed_adam import PackedAdam
from memlab.cases.straight_through import StraightThrough, round_forward, straight_through
from memlab.cases.undisposed import Undisposed
from memlab.lab import text
from memlab.lab.models import TinyLlama
from memlab.lab.quantize import dequantize, quantize
from memlab.lab.train import one_thread
from memlab.measure import Saved, storage_bytes
from memlab.measure.process import available

SHAPE = {"layers": 2, "d_model": 64, "d_ff": 128, "heads": 4, "kv_heads": 2, "head_dim": 32}
TINY = Model(family="qwen3", vocab=256, positions=32, tied=False, **SHAPE)
BATCHES = list(text.batches(1, 32, steps=2))
SWITCHES = [{}, {"states": "nvfp4"}, {"packed": False}, {"master": "fp32"}, {"again": True}]
SWITCHES += [{"recompute": "layers"}, {"packed": False, "master": "fp32"}, {"rows": 16}]


@pytest.fixture(scope="module")
def file():
    torch.manual_seed(0)
    return export(TinyLlama(TINY))


def gradients(file, **switches):
    settings = Settings(rows=0, **switches)
    trainer = Trainer(load(file, TINY, settings), settings)
    with one_thread():
        loss = trainer.passes(BATCHES[0])
    return loss, {name: p.grad for name, p in trainer.net.named_parameters()}


@pytest.mark.sample(5)
@pytest.mark.parametrize("switches", SWITCHES, ids=str)
def test_the_end_of_a_forward_pass_is_derived_to_the_byte(file, switches):
    settings = Settings(**{"rows": 64} | switches)
    with one_thread():
        found, losses = run(file, TINY, settings, BATCHES)
    derived = in_step(TINY, settings, batch=1, tokens=32)
    width = 4 if settings.master == "fp32" else 2
    around = 2 * 32 * 32 * width + 2 * BATCHES[0].nbytes + 4  # tables, ids, the sum of the losses
    assert found["forward"] == sum(derived.values()) + around
    tables = 2 * 32 * 32 * width
    if settings.packed:
        kept = resident(TINY, settings)
        assert found["ready"] == sum(kept.values()) - kept["gradients"] + tables
    assert found["step"] < found["forward"] < found["peak"]
    assert losses[1] < losses[0]


@pytest.mark.parametrize(
    "more", [{"recompute": "prefix"}, {"recompute": "layers"}, {"again": True}]
)
def test_each_way_to_recompute_gives_the_same_gradients(file, more):
    loss, plain = gradients(file, master="fp32")
    other, found = gradients(file, master="fp32", **more)
    assert torch.allclose(loss, other, rtol=1e-5)
    for name, gradient in plain.items():
        assert torch.allclose(gradient, found[name], rtol=1e-3, atol=1e-5), name


def test_what_is_not_disposed_of_stays_until_it_is_collected(file):
    with one_thread():
        plain, waiting = (run(file, TINY, Settings(rows=0, disposed=d), BATCHES)[0] for d in (1, 0))
    assert waiting["forward"] > 3 * plain["forward"]
    assert waiting["peak"] > 2 * waiting["backward"]  # the optimizer leaves results, too
    assert waiting["step"] == plain["step"]
    undisposed = Undisposed()
    with undisposed:
        torch.ones(8).mul(2)
    assert storage_bytes(undisposed.held) == 2 * 8 * 4


def test_loading_one_by_one_takes_less_and_gives_the_same_model(file):
    ways = [Settings(loading=way) for way in ("together", "one by one")]
    nets = [load(file, TINY, settings).state_dict() for settings in ways]
    assert all(torch.equal(a, nets[1][name]) for name, a in nets[0].items())
    found = [run(file, TINY, settings, BATCHES[:1])[0]["loading"] for settings in ways]
    assert found[1] < found[0]


@pytest.mark.parametrize("change", [{"recompute": "some"}, {"master": "int8"}, {"loading": "x"}])
def test_another_word_is_refused_with_the_known_ones(change):
    with pytest.raises(ValueError, match="is unknown; known: "):
        Settings(**change)
    with pytest.raises(ValueError, match="chunk=0"):
        Settings(chunk=0)


def test_the_gradient_passes_straight_through_the_rounding():
    weight = torch.randn(8, 32, generator=torch.Generator().manual_seed(0)).requires_grad_()
    rounded = straight_through(weight)
    assert torch.allclose(rounded, dequantize(quantize(weight, "nvfp4"), torch.float32), atol=1e-6)
    (rounded * torch.arange(32.0)).sum().backward()
    assert torch.equal(weight.grad, torch.arange(32.0).expand(8, 32))


def test_rounding_again_keeps_nothing_and_a_bias_is_refused():
    x = torch.ones(4, 32, requires_grad=True)
    kept = {}
    for again in (False, True):
        layers = round_forward(nn.Sequential(nn.Linear(32, 16, bias=False)), again=again)
        assert isinstance(layers[0], StraightThrough)
        with Saved(exclude=[layers, x]) as saved:
            layers(x)
        kept[again] = saved.bytes
    assert kept == {False: 32 * 16 * 4, True: 0}
    with pytest.raises(ValueError, match="0 has a bias"):
        round_forward(nn.Sequential(nn.Linear(32, 16)))


@pytest.mark.parametrize("packed", [True, False])
def test_gradients_are_given_back_by_the_packed_optimizer_alone(file, packed):
    settings = Settings(rows=0, packed=packed)
    trainer = Trainer(load(file, TINY, settings), settings)
    with one_thread():
        trainer.step(BATCHES[0])
    left = storage_bytes([p.grad for p in trainer.net.parameters() if p.grad is not None])
    assert left == in_step(TINY, settings, batch=1, tokens=32)["gradients"]
    assert (left == 0) == (packed and program.GIVES_BACK)


@pytest.mark.parametrize("switches", [{}, {"packed": False}, {"again": True}], ids=str)
def test_the_fuller_moment_is_the_fuller_of_the_two_that_are_measured(file, switches):
    settings = Settings(rows=0, **switches)
    with one_thread():
        found, _ = run(file, TINY, settings, BATCHES)
    apart = [sum(in_step(TINY, settings, batch=1, tokens=32).values())]
    apart.append(sum(resident(TINY, settings).values()))
    derived = sum(fullest(TINY, settings, batch=1, tokens=32).values())
    around = found["forward"] - apart[0]
    assert found["backward"] == apart[1] + around
    assert derived + around == max(found["forward"], found["backward"]) <= found["peak"]


def test_a_step_that_starts_from_codes_is_lost_where_they_round_it_away():
    torch.manual_seed(0)
    start = torch.randn(16, 32)
    ends = {}
    for way in ("wide", "packed"):
        weight = nn.Parameter(dequantize(quantize(start, "nvfp4"), torch.float32))
        first = weight.detach().clone()
        optimizer = PackedAdam([weight], lr=1e-4, start=way)
        for _ in range(10):
            weight.sum().backward()
            optimizer.step()
        ends[way] = (weight.detach() - first).abs().median().item()
    # The last step, and how far the scale of the tensor went with it; nothing else is remembered.
    assert ends["packed"] < 0.6 * ends["wide"]
    for wrong in ({"start": "narrow"}, {"start": "packed", "weights": None}):
        with pytest.raises(ValueError, match="start="):
            PackedAdam([nn.Parameter(torch.ones(2, 32))], **wrong)


@pytest.mark.parametrize(("states", "off"), [("int8/row", 0.08), ("nvfp4", 0.4)])
def test_packed_adam_goes_where_adam_goes(states, off):
    torch.manual_seed(0)
    start = torch.randn(16, 32)
    aim = torch.randn(16, 32)
    ends = []
    for make in (torch.optim.Adam, lambda p, lr: PackedAdam(p, lr, states=states, rows=4)):
        weight = nn.Parameter(start.clone())
        optimizer = make([weight], lr=0.05)
        for _ in range(20):
            optimizer.zero_grad()
            ((weight - aim) ** 2).mean().backward()
            optimizer.step()
        ends.append(weight.detach() - start)
    # Codes round the states in each of the steps: by a few percent, or by a fourth.
    assert (ends[1] - ends[0]).norm() < off * ends[0].norm()


def test_rows_change_no_weight_and_no_lasting_byte_but_a_factor():
    found = {}
    for rows in (0, 4):
        torch.manual_seed(0)
        weight = nn.Parameter(torch.randn(16, 32))
        optimizer = PackedAdam([weight], rows=rows)
        weight.square().sum().backward()
        optimizer.step()
        found[rows] = weight.detach().clone(), storage_bytes(optimizer)
    assert torch.equal(found[0][0], found[4][0])
    assert found[4][1] - found[0][1] == 3 * 4  # of nvfp4's packed copy, one for each part
    with pytest.raises(ValueError, match="rows=-1"):
        PackedAdam([nn.Parameter(torch.ones(2, 16))], rows=-1)


def test_a_trace_of_two_layers_tells_of_all():
    model = TINY.replace(layers=5)
    settings = Settings(rows=0)
    one, two = (end_of_forward(model, settings, tokens=32, layers=n) for n in (1, 2))
    derived = sum(in_step(model, settings, batch=1, tokens=32).values())
    assert one + 4 * (two - one) == end_of_forward(model, settings, tokens=32)
    assert one + 4 * (two - one) - derived == 2 * 32 * 32 * 2 + 32 * 8
    never = Settings(rows=0, disposed=False)
    assert end_of_forward(model, never, tokens=32, layers=1) > 2 * one


def test_the_sums_are_all_there_and_each_has_its_settings():
    sums = list(combinations(TINY, tokens=8, runtime=0))
    assert len({tuple(c.said.values()) for c in sums}) == len(sums) == 2**6 * 2 - 2**4
    plain = next(c for c in sums if "kept" in c.said.values())
    assert plain.total == sum(in_step(TINY, Settings(), batch=1, tokens=8).values())
    assert rounded_values(TINY) == 2 * (64 * 128 * 2 + 64 * 64 * 2 + 3 * 64 * 128)
    assert ledger(plain.terms).total() == plain.total


def test_the_facts_of_the_program():
    assert program.forgotten(program.COMMAND) == [
        "--use-packed-optimizer",
        "--master-dtype",
        "--grad-ckpt-chunk",
    ]


def test_a_guard_is_patient_as_long_as_it_is_told():
    stopped = []
    how = {"limit": 10, "poll": 1.0, "wait": lambda s: None, "stop": lambda: stopped.append(1)}
    for over, series, highest, ends in [
        (0.0, [5, 11, 5], 11, True),
        (2.0, [11, 11, 5, 11], 11, False),
        (2.0, [11, 11, 12], 12, True),
        (0.0, [10, 10], 10, False),
    ]:
        looks = iter(series)
        seen = guard(lambda looks=looks: next(looks, None), over=over, **how)
        assert (seen.highest, seen.stopped) == (highest, ends)
    assert len(stopped) == 2
    with pytest.raises(ValueError, match="limit=0"):
        guard(lambda: None, limit=0)


@pytest.mark.skipif(not available(), reason="this system does not say what a process holds")
def test_a_process_that_grows_is_ended_and_one_that_is_small_is_not():
    grow = "import time\nheld = []\nwhile True: held.append(b'x' * 20_000_000); time.sleep(0.01)"
    seen = run_guarded([sys.executable, "-c", grow], limit=150 * 10**6, poll=0.02)
    assert seen.stopped and seen.highest > 150 * 10**6
    calm = run_guarded([sys.executable, "-c", "pass"], limit=10**9, poll=0.02)
    assert not calm.stopped
