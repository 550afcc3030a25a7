"""Rounding by chance: only neighbours come out, the mean is right; the optimizer is AdamW."""

import pytest
import torch

from memlab.lab.rounding import RoundedAdamW, stochastic_round
from memlab.measure import storage_bytes


def test_only_the_two_neighbours_come_out_at_the_right_odds():
    torch.manual_seed(0)
    x = torch.full((100_000,), 1.0 + 0.25 / 128)  # a quarter of the way from 1 to the next
    found, counts = stochastic_round(x).float().unique(return_counts=True)
    assert found.tolist() == [1.0, 1.0 + 1 / 128]
    # 100,000 throws at odds of 1 to 3: five standard deviations are 0.7 %.
    assert counts[1] / len(x) == pytest.approx(0.25, abs=0.007)


@pytest.mark.parametrize("scale", [1.0, -1.0, 1e-30, -3e20])
def test_the_mean_is_the_number(scale):
    torch.manual_seed(0)
    x = torch.full((200_000,), 1.2345) * scale
    mean = stochastic_round(x).double().mean()
    assert mean == pytest.approx(x[0].item(), rel=1e-4)


def test_what_bf16_can_say_stays_as_it_is():
    x = torch.randn(1000).bfloat16().float()
    x[:3] = torch.tensor([float("inf"), float("-inf"), 0.0])
    assert torch.equal(stochastic_round(x).float(), x)
    assert stochastic_round(torch.tensor([float("nan")])).isnan().all()


def test_a_generator_makes_it_repeatable():
    x = torch.randn(50)
    draws = [stochastic_round(x, torch.Generator().manual_seed(7)) for _ in range(2)]
    assert torch.equal(*draws)


def test_small_updates_add_up_only_by_chance():
    torch.manual_seed(0)
    nearest = by_chance = torch.ones(4096, dtype=torch.bfloat16)
    for _ in range(100):
        nearest = (nearest.float() + 1e-3).bfloat16()
        by_chance = stochastic_round(by_chance.float() + 1e-3)
    assert torch.equal(nearest, torch.ones(4096, dtype=torch.bfloat16))
    assert by_chance.float().mean() == pytest.approx(1.1, abs=0.002)


def test_without_chance_it_is_adamw_on_values_that_bf16_can_say():
    # One step from one value: torch's own AdamW in fp32, rounded to bf16, must be the same.
    torch.manual_seed(0)
    start, gradient = torch.randn(300).bfloat16(), torch.randn(300).bfloat16()
    ours, theirs = (torch.nn.Parameter(start.to(d)) for d in (torch.bfloat16, torch.float32))
    ours.grad, theirs.grad = gradient.clone(), gradient.float()
    RoundedAdamW([ours], lr=0.1, stochastic=False).step()
    torch.optim.AdamW([theirs], lr=0.1).step()
    assert torch.equal(ours.detach(), theirs.detach().bfloat16())


def test_its_states_take_four_bytes_a_parameter():
    p = torch.nn.Parameter(torch.randn(64, 32).bfloat16())
    p.grad = torch.ones_like(p)
    optimizer = RoundedAdamW([p])
    optimizer.step()
    assert storage_bytes(optimizer.state[p]) == 4 * p.numel()


def test_another_format_is_refused():
    with pytest.raises(TypeError, match="x is in torch.float16; torch.float32 is rounded"):
        stochastic_round(torch.ones(3, dtype=torch.float16))
