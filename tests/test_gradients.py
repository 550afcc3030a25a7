"""Gradients: derived bytes against what autograd leaves in `.grad`."""

import pytest
import torch

from memlab.measure import Tracker
from memlab.terms.gradients import accumulation_transient, accumulator, gradients


@pytest.mark.parametrize(("value", "dtype"), [("fp32", torch.float32), ("bf16", torch.bfloat16)])
def test_equal_to_autograd(value, dtype):
    net = torch.nn.Sequential(torch.nn.Linear(17, 33), torch.nn.Linear(33, 5)).to(dtype)
    net(torch.ones(2, 17, dtype=dtype)).sum().backward()
    real = sum(p.grad.untyped_storage().nbytes() for p in net.parameters())
    assert gradients(sum(p.numel() for p in net.parameters()), format=value) == real


def test_a_second_buffer_in_fp32():
    assert accumulator(1000) == 4000


def test_only_the_second_micro_batch_needs_a_gradient_beside_grad():
    assert accumulation_transient(1000, micro_batches=1) == 0
    assert (
        accumulation_transient(1000, micro_batches=2)
        == accumulation_transient(1000, micro_batches=16)
        == 4000
    )


class Tied(torch.nn.Module):
    """The smallest network whose table [V, D] is used twice."""

    def __init__(self, vocab, width):
        super().__init__()
        self.embedding = torch.nn.Embedding(vocab, width)
        self.middle = torch.nn.Linear(width, width, bias=False)
        self.head = torch.nn.Linear(width, vocab, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, ids):
        return self.head(self.middle(self.embedding(ids))).sum()


@pytest.mark.parametrize("micro_batches", [1, 2, 3])
def test_a_tied_table_holds_several_gradients_at_once(micro_batches):
    vocab, width, ids = 1000, 24, torch.arange(5)
    net, table = Tied(vocab, width), gradients(vocab * width)
    for _ in range(micro_batches):
        with Tracker() as tracker:
            tracker.label(net)
            net(ids).backward()
    moments = [tracker.alive(event.index) for event in tracker.timeline if event.bytes == table]
    beside = [[n for r, n in alive if r.category == "other"].count(table) for alive in moments]
    derived = accumulation_transient(vocab * width, micro_batches=micro_batches, tied=vocab * width)
    assert max(beside) * table == derived


def test_wrong_input_fails_by_name():
    with pytest.raises(ValueError, match="micro_batches=0; a step needs at least one"):
        accumulation_transient(10, micro_batches=0)
    with pytest.raises(TypeError, match="count=1.5 is a float"):
        gradients(1.5)
