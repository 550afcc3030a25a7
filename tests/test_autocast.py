"""What torch.autocast keeps beside the weights, by hand and against torch."""

import pytest

torch = pytest.importorskip("torch")
from torch.nn.functional import linear  # noqa: E402

from memlab.measure import Saved  # noqa: E402
from memlab.terms.autocast import input_copies, weight_copies  # noqa: E402

WIDTH, OUTPUTS = 16, 8


def saved(make, *, exclude=()):
    with Saved(exclude=exclude) as kept, torch.autocast("cpu", dtype=torch.bfloat16):
        results = make()
    assert all(each.dtype == torch.bfloat16 for each in results)
    return kept.bytes


def test_by_hand():
    """The matrices of a block of TinyLlama in bf16; a frozen one that three layers use."""
    assert weight_copies(2 * 64 * 16 * 6 + 3 * 64 * 160) == 86016
    assert weight_copies(1000, uses=3) == 2000
    assert weight_copies(1000, uses=3, frozen=True) == 6000
    assert input_copies(2 * 16 * 64, readers=3) == 3 * 2 * 16 * 64 * 2


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("uses", [1, 2, 3])
def test_torch_shares_the_copies_of_trained_weights_only(frozen, uses):
    weight = torch.nn.Parameter(torch.randn(OUTPUTS, WIDTH), requires_grad=not frozen)
    inputs = [torch.randn(4, WIDTH, requires_grad=True).bfloat16() for _ in range(uses)]
    kept = saved(lambda: [linear(x, weight) for x in inputs], exclude=[weight, *inputs])
    assert kept == weight_copies(weight.numel(), uses=uses, frozen=frozen)


@pytest.mark.parametrize("readers", [1, 2, 3])
def test_torch_casts_an_input_for_each_of_its_readers(readers):
    weights = [torch.nn.Parameter(torch.randn(OUTPUTS, WIDTH)) for _ in range(readers)]
    x = 2 * torch.randn(4, WIDTH, requires_grad=True)
    kept = saved(lambda: [linear(x, weight) for weight in weights], exclude=[x, *weights])
    copies = input_copies(x.numel(), readers=readers)
    assert kept == copies + weight_copies(readers * OUTPUTS * WIDTH)


def test_a_narrow_input_is_saved_once():
    weights = [torch.nn.Parameter(torch.randn(OUTPUTS, WIDTH)) for _ in range(3)]
    x = torch.randn(4, WIDTH, requires_grad=True).bfloat16()
    kept = saved(lambda: [linear(x, weight) for weight in weights], exclude=weights)
    assert kept == x.nbytes + weight_copies(3 * OUTPUTS * WIDTH)


def test_wrong_values():
    with pytest.raises(ValueError, match="uses=-1 is negative"):
        weight_copies(10, uses=-1, frozen=True)
    with pytest.raises(ValueError, match="unknown format 'bf17'"):
        input_copies(10, format="bf17")
