"""Gradients: derived bytes against what autograd leaves in `.grad`."""

import pytest
import torch

from memlab.terms.gradients import accumulation_transient, accumulator, gradients


@pytest.mark.parametrize(("value", "dtype"), [("fp32", torch.float32), ("bf16", torch.bfloat16)])
def test_equal_to_autograd(value, dtype):
    net = torch.nn.Sequential(torch.nn.Linear(17, 33), torch.nn.Linear(33, 5)).to(dtype)
    net(torch.ones(2, 17, dtype=dtype)).sum().backward()
    real = sum(p.grad.untyped_storage().nbytes() for p in net.parameters())
    assert gradients(sum(p.numel() for p in net.parameters()), value) == real


def test_a_second_buffer_in_fp32():
    assert accumulator(1000) == 4000


def test_only_the_second_micro_batch_needs_a_gradient_beside_grad():
    assert accumulation_transient(1000, 1) == 0
    assert accumulation_transient(1000, 2) == accumulation_transient(1000, 16) == 4000


def test_wrong_input_fails_by_name():
    with pytest.raises(ValueError, match="micro_batches=0; a step needs at least one"):
        accumulation_transient(10, 0)
    with pytest.raises(TypeError, match="count=1.5 is a float"):
        gradients(1.5)
