"""Pruning: the right values go, what is left computes the same, and removed units free bytes."""

import pytest
import torch

from memlab import Model
from memlab.lab.models import TinyLlama
from memlab.lab.prune import SparseLinear, importance, shrink, smallest, two_of_four
from memlab.measure import storage_bytes
from memlab.terms.sparse import csr

MODEL = Model(layers=2, d_model=32, d_ff=48, heads=4, kv_heads=2, vocab=256, positions=32)


def test_the_smallest_go():
    weight = torch.tensor([[0.1, -3.0, 0.0], [2.0, -0.2, 1.0]])
    assert smallest(weight, 0.5).tolist() == [[False, True, False], [True, False, True]]
    assert smallest(weight, 0).all() and not smallest(weight, 1).any()


def test_equal_values_go_in_order_so_that_the_share_is_exact():
    assert smallest(torch.ones(10, 10), 0.37).sum() == 63


def test_two_of_every_four_stay():
    weight = torch.tensor([[1.0, -5.0, 3.0, 0.0, 9.0, 8.0, 7.0, 6.0]])
    assert two_of_four(weight).tolist() == [[False, True, True, False, True, True, False, False]]
    assert two_of_four(torch.randn(16, 64)).unflatten(-1, (-1, 4)).sum(-1).eq(2).all()


@pytest.mark.parametrize("bias", [True, False])
def test_a_sparse_layer_computes_the_same_in_the_bytes_that_were_derived(bias):
    linear = torch.nn.Linear(64, 96, bias=bias)
    with torch.no_grad():
        linear.weight.mul_(smallest(linear.weight, 0.9))
    sparse = SparseLinear(linear)
    x = torch.randn(3, 5, 64)
    assert torch.allclose(sparse(x), linear(x), atol=1e-5)
    nonzero = int(linear.weight.count_nonzero())
    assert storage_bytes(sparse.parts()) == csr(96, nonzero=nonzero, format="fp32", index_bytes=4)


def test_a_shrunk_model_is_the_smaller_model():
    net = shrink(TinyLlama(MODEL), 20)
    small = MODEL.replace(d_ff=20)
    assert sum(p.numel() for p in net.parameters()) == small.parameter_count
    assert storage_bytes(list(net.parameters())) == 4 * small.parameter_count
    net(torch.randint(256, (2, 8)), torch.randint(256, (2, 8))).backward()


def test_the_important_units_stay_in_order():
    net = TinyLlama(MODEL)
    ff = net.layers[0].feed_forward
    kept = importance(ff).topk(5).indices.sort().values
    rows = ff.gate.weight[kept].clone()
    assert torch.equal(shrink(net, 5).layers[0].feed_forward.gate.weight, rows)


def test_without_its_useless_units_a_layer_computes_the_same():
    net = TinyLlama(MODEL)
    with torch.no_grad():
        for layer in net.layers:
            layer.feed_forward.down.weight[:, ::2] = 0
    ids = torch.randint(256, (2, 8))
    before = net(ids)
    assert torch.allclose(shrink(net, 24)(ids), before, atol=1e-5)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: smallest(torch.ones(2, 2), 1.5), "share=1.5 is not between 0 and 1"),
        (lambda: two_of_four(torch.ones(2, 6)), "6 columns are not a multiple of 4"),
        (lambda: shrink(TinyLlama(MODEL), 49), "units=49; a layer has 48"),
        (lambda: shrink(TinyLlama(MODEL), 0), "units=0; a layer has 48"),
    ],
)
def test_wrong_input_is_refused_by_name(act, message):
    with pytest.raises(ValueError, match=message):
        act()
