"""The layer of experts that chapter 12 reads: two programs, the same numbers, its derived bytes."""

import pytest
import torch
import torch.nn.functional as F

from memlab.lab.experts import Mixture
from memlab.measure import Saved, Tracker
from memlab.terms import experts

D, X, K, M, R = 32, 6, 2, 24, 40


def layer(way="grouped", per_token=K):
    torch.manual_seed(0)
    return Mixture(D, experts=X, per_token=per_token, expert_ff=M, way=way)


def tokens(dtype=torch.float32):
    return torch.randn(R, D, generator=torch.manual_seed(1), dtype=dtype, requires_grad=True)


def routings(per_token=K):
    yield None
    yield torch.arange(per_token).repeat(R, 1)
    yield (torch.arange(per_token * R) % X).view(R, per_token)


def peak(net, x, chosen):
    with Tracker() as tracker:
        tracker.label(net)
        net(x, chosen).square().mean().backward()
    net.zero_grad()
    return tracker.peak


def test_it_is_the_sum_over_a_tokens_experts():
    net, x = layer(), tokens()
    best, chosen = net.router(x).softmax(-1).topk(K)
    for row in range(0, R, 7):
        total = torch.zeros(D)
        for weight, expert in zip(best[row], chosen[row], strict=True):
            gate, up = (net.up[expert] @ x[row]).chunk(2)
            total += weight * (net.down[expert] @ (F.silu(gate) * up))
        assert torch.allclose(net(x)[row], total, atol=1e-4)


@pytest.mark.parametrize("per_token", [1, 2, X])
def test_both_programs_compute_the_same(per_token):
    grouped, loop = layer("grouped", per_token), layer("loop", per_token)
    x = tokens()
    for chosen in routings(per_token):
        one, other = grouped(x, chosen), loop(x, chosen)
        assert torch.allclose(one, other, atol=1e-5)
        ours, theirs = (
            torch.autograd.grad(y.square().sum(), [x, net.up, net.down, net.router.weight])
            for y, net in ((one, grouped), (other, loop))
        )
        assert all(
            torch.allclose(a, b, atol=1e-2, rtol=1e-4) for a, b in zip(ours, theirs, strict=True)
        )


@pytest.mark.parametrize(("dtype", "format"), [(torch.float32, "fp32"), (torch.bfloat16, "bf16")])
def test_it_saves_what_the_term_says_wherever_tokens_go(dtype, format):
    sizes = {"d_model": D, "experts": X, "experts_per_token": K, "expert_ff": M}
    net, x = layer().to(dtype), tokens(dtype)
    for chosen in routings():
        with Saved(exclude=[net, x]) as saved:
            net(x, chosen)
        assert saved.bytes == experts.kept(R, **sizes, format=format)


def test_routing_moves_the_peak_of_the_loop_alone():
    grouped, loop, x = layer(), layer("loop"), tokens()
    peaks = [[peak(net, x, chosen) for chosen in list(routings())[1:]] for net in (grouped, loop)]
    assert peaks[0][0] == peaks[0][1] and peaks[1][0] < peaks[1][1]


def test_the_gradient_of_one_expert_is_as_large_as_that_of_all():
    net = layer("loop")
    with Tracker() as tracker:
        tracker.label(net)
        before = tracker.timeline[-1].total
        net.up[0].square().sum().backward()
    assert tracker.peak - before >= net.up.nbytes
    assert not net.up.grad[1:].any() and net.up.grad[0].any()


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"way": "eager"}, "way='eager'; known: grouped, loop"),
        ({"per_token": 7}, "per_token=7; between 1 and X=6 experts"),
        ({"per_token": 0}, "per_token=0; between 1 and X=6 experts"),
    ],
)
def test_wrong_input_is_named(said, message):
    given = {"experts": X, "per_token": K, "expert_ff": M, "way": "grouped"} | said
    with pytest.raises(ValueError, match=message):
        Mixture(D, **given)
