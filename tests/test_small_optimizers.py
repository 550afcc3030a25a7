"""8-bit Muon and GaLore: what they keep, to the byte, and that they compute what they say."""

import pytest
import torch
from torch.optim._muon import _zeropower_via_newtonschulz

from memlab import Model, Recipe, estimate
from memlab.lab import galore, muon8
from memlab.lab import optim as small
from memlab.lab.train import train
from memlab.measure import Tracker, storage_bytes
from memlab.terms import low_rank, optimizer_step
from memlab.terms import optimizer as terms

MODEL = Model(layers=2, d_model=64, d_ff=96, heads=4, kv_heads=2, vocab=256, positions=32)
SHAPES = [(64, 64), (64, 96), (96, 64), (60, 64), (63, 129)]


def stepped(make, shape, *, dtype=torch.float32, steps=3):
    """A matrix after some steps with drawn gradients, and its optimizer."""
    torch.manual_seed(0)
    p = torch.nn.Parameter(torch.randn(shape, dtype=dtype))
    optimizer = make([p])
    for _ in range(steps):
        p.grad = torch.randn(shape, dtype=dtype)
        optimizer.step()
    return p.detach(), optimizer


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_muon8_keeps_what_is_derived(shape):
    _, optimizer = stepped(muon8.Muon8, shape)
    assert storage_bytes(optimizer) == terms.state("muon", shape=shape, formats=("int8/128",))


def test_under_1_04_bytes_by_hand():
    _, optimizer = stepped(muon8.Muon8, (64, 96))
    assert storage_bytes(optimizer) == 64 * 96 + 64 * 96 // 128 * 4 < 1.04 * 64 * 96


def test_narrow_is_off_by_half_a_scale_at_most():
    values = torch.randn(32, 256)
    values[0, :128] = 0
    blocks = muon8.narrow(values)
    off = (muon8.widen(blocks, values.shape) - values).view(-1, 128).abs()
    assert (off <= blocks.scales / 2 * 1.0001).all()
    assert blocks.codes.dtype == torch.int8 and (off[0] == 0).all()
    with pytest.raises(ValueError, match="n=129 is not a multiple of the block of 128"):
        muon8.narrow(torch.ones(129))


@pytest.mark.parametrize("shape", [(8, 24), (24, 8)])
def test_orthogonal_is_torchs(shape):
    matrix = torch.randn(shape)
    wanted = _zeropower_via_newtonschulz(matrix, muon8.COEFFICIENTS, muon8.ROUNDS, 1e-7)
    assert torch.equal(muon8.orthogonal(matrix), wanted)


def test_muon8_goes_where_muon_goes():
    def reference(p):
        return torch.optim.Muon(p, lr=3e-3, adjust_lr_fn="match_rms_adamw")

    exact, _ = stepped(reference, (60, 64), steps=8)
    small, _ = stepped(muon8.Muon8, (60, 64), steps=8)  # fewer than 4,096 values stay fp32
    assert torch.allclose(small, exact, atol=1e-6)
    start, _ = stepped(reference, (64, 96), steps=0)
    exact, _ = stepped(reference, (64, 96), steps=8)
    near, _ = stepped(muon8.Muon8, (64, 96), steps=8)
    assert 0 < (near - exact).norm() < 0.05 * (exact - start).norm()


def room(optimizer, p):
    """The most bytes that another step adds to what is there before and after it."""
    with Tracker() as tracker:
        tracker.label([p, p.grad], "other")
        tracker.label(optimizer)
        optimizer.step()
        at_rest, start = tracker.timeline[-1].total, len(tracker.timeline)
        optimizer.step()
    return max(event.total for event in tracker.timeline[start:]) - at_rest


def test_muon8_widens_one_matrix_at_a_time():
    matrices = [torch.nn.Parameter(torch.randn(128, 128)) for _ in range(3)]
    for p in matrices:
        p.grad = torch.randn(128, 128)
    assert room(muon8.Muon8(matrices), matrices[0]) == room(torch.optim.Muon(matrices), matrices[0])


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("rank", [1, 16, 500])
def test_galore_keeps_what_is_derived(rank, shape, dtype):
    kind = {"fp32": torch.float32, "bf16": torch.bfloat16}[dtype]
    _, optimizer = stepped(lambda p: galore.GaLore(p, rank=rank), shape, dtype=kind)
    assert storage_bytes(optimizer) == low_rank.galore(shape, rank=rank, format=dtype)
    assert storage_bytes(optimizer) == terms.state(f"galore/{rank}", shape=shape, format=dtype)


@pytest.mark.parametrize("shape", [(6, 9), (9, 6)])
def test_in_the_plain_directions_galore_is_adamw(monkeypatch, shape):
    monkeypatch.setattr(galore, "directions", lambda grad, rank: torch.eye(6))
    low, _ = stepped(lambda p: galore.GaLore(p, lr=0.04, rank=6, scale=0.25, weight_decay=0), shape)
    full, _ = stepped(lambda p: torch.optim.AdamW(p, lr=0.01, weight_decay=0), shape)
    assert torch.allclose(low, full, atol=1e-6)


def test_galore_moves_in_its_directions_only():
    def make(p):
        return galore.GaLore(p, rank=3, weight_decay=0)

    start, _ = stepped(make, (12, 20), steps=0)
    end, _ = stepped(make, (12, 20), steps=5)
    assert torch.linalg.matrix_rank(end - start, rtol=1e-4) == 3


def test_directions_are_those_of_the_largest_singular_values():
    grad = torch.diag(torch.tensor([1.0, 5.0, 3.0]))
    found = galore.directions(grad, 2).abs()
    assert torch.allclose(found, torch.tensor([[0.0, 0], [1, 0], [0, 1]]))


def test_the_rank_from_which_galore_costs():
    shape, adamw = (4096, 14336), 2 * 4096 * 14336 * 4
    rank = low_rank.largest_rank(shape, bytes=adamw)
    assert rank == 2 * 4096 * 14336 // (4096 + 2 * 14336)
    assert low_rank.galore(shape, rank=rank) <= adamw < low_rank.galore(shape, rank=rank + 1)
    assert low_rank.largest_rank((8, 16), bytes=10**9) == 8


@pytest.mark.filterwarnings("ignore")  # torchao's own deprecations, not ours to mend
@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
@pytest.mark.parametrize("kind", sorted(terms.QUANTIZED))
@pytest.mark.parametrize("shape", [(64, 64), (128, 96), (33, 256)], ids=str)
def test_the_room_of_a_low_bit_step_that_is_not_compiled(shape, kind, dtype):
    value = {"fp32": torch.float32, "bf16": torch.bfloat16}[dtype]
    p = torch.nn.Parameter(torch.randn(shape, dtype=value))
    optimizer = small.optimizer(kind, {"weight": p})
    p.grad = torch.randn(shape, dtype=value)
    assert room(optimizer, p) == optimizer_step.low_bit_eager(shape, kind=kind, format=dtype)


RECIPES = [
    Recipe.named("muon8"),
    Recipe(name="galore/8", optimizer="galore/8"),
    Recipe.named("muon8").replace(name="muon8, bf16", weights="bf16", gradients="bf16"),
    Recipe(name="bf16", weights="bf16", gradients="bf16", optimizer="galore/8"),
]


@pytest.mark.sample(2)
@pytest.mark.parametrize("recipe", RECIPES, ids=lambda r: r.name)
def test_a_run_keeps_what_is_estimated(recipe):
    run = train(MODEL, recipe, steps=12, batch=2, tokens=16)
    assert estimate(MODEL, recipe).beside(run.ledger).difference() == 0
    assert run.losses[-1] < run.losses[0] - 0.5
    traced = train(MODEL, recipe, steps=2, batch=2, tokens=16, device="meta")
    assert estimate(MODEL, recipe).beside(traced.ledger).difference() == 0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: muon8.Muon8([torch.nn.Parameter(torch.ones(4))]), "is not a matrix; Muon"),
        (lambda: galore.GaLore([torch.nn.Parameter(torch.ones(4))], rank=1), "is not a matrix"),
        (lambda: galore.GaLore([torch.nn.Parameter(torch.ones(4, 4))], rank=0), "rank=0; at"),
        (lambda: low_rank.galore((4,), rank=1), "shape=\\(4,\\) is not a matrix"),
        (lambda: low_rank.galore((4, 4), rank=0), "rank=0; at least one direction"),
        (lambda: optimizer_step.low_bit_eager((4, 4)), "16 values keep plain states"),
        (lambda: optimizer_step.low_bit_eager((4, 4), kind="adamw"), "unknown kind 'adamw'"),
        (lambda: terms.state("galore", shape=(4, 4)), "'galore' has no rank"),
        (lambda: Recipe(optimizer="galore/0"), "'galore/0' has no rank"),
        (lambda: Recipe(optimizer="lamb"), "unknown optimizer 'lamb'"),
    ],
)
def test_wrong_input_fails_by_name(call, words):
    with pytest.raises(ValueError, match=words):
        call()
