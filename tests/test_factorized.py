"""A factorized embedding: the parameters of the model, its logits, and the bytes of a real step."""

import pytest
import real_steps
import torch
from real_steps import Question, real_step
from test_lab_models import kinds, on_meta

from memlab import Model, Run
from memlab.lab.generate import Cache, read
from memlab.lab.models import TinyLlama
from memlab.step.simulate import simulate

SHAPE = dict(layers=2, d_model=48, d_ff=80, heads=4, kv_heads=2, vocab=700, positions=64)


@pytest.mark.parametrize("tied", [True, False])
def test_it_has_the_tensors_of_the_model(tied):
    model = Model(**SHAPE, embed_dim=12, tied=tied)
    module = on_meta(model)
    expected = {(t.name, t.shape): t.copies for t in model.tensors()}
    assert kinds(module) == expected
    assert expected["project_in", (48, 12)] == expected["project_out", (12, 48)] == 1


def test_its_table_is_the_product_of_two():
    # ALBERT's point: [V, E] times [E, D] stands in for [V, D].
    net = TinyLlama(Model(**SHAPE, embed_dim=12))
    ids = torch.arange(700)
    table_VD = net.embedding.weight @ net.project_in.weight.T
    assert torch.allclose(net.project_in(net.embedding(ids)), table_VD, atol=1e-6)
    assert torch.linalg.matrix_rank(table_VD) == 12


def test_it_decodes_as_it_reads():
    model = Model(**SHAPE, embed_dim=12)
    net = TinyLlama(model).eval()
    ids = torch.randint(700, (2, 6))
    cache = Cache(model, batch=2, capacity=6)
    read(net, ids[:, :5], cache)
    last = read(net, ids[:, 5:], cache)
    assert torch.allclose(last, net(ids)[:, -1], atol=1e-5)


@pytest.mark.sample(6)
@pytest.mark.parametrize("precision", ["fp32", "bf16", "autocast-bf16"])
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("embed_dim", [12, 96])
def test_a_real_step_has_the_bytes_of_the_simulated_one(monkeypatch, precision, tied, embed_dim):
    model = Model(**SHAPE, embed_dim=embed_dim, tied=tied)
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    monkeypatch.setattr(real_steps, "build", lambda step: TinyLlama(model).to(dtype).train())
    step = Question({}, precision, Run.cpu(implementation="memlab", batch=3, tokens=20))
    real = real_step(step)
    derived = simulate(model, step.recipe, step.run)
    assert derived.peak.bytes == real.peak.bytes
    assert derived.held == real.held
    assert derived.peak.first_step_bytes == real.first_peak.bytes


@pytest.mark.parametrize("implementation", ["memlab", "transformers"])
@pytest.mark.parametrize(
    "flag",
    [
        {"gated": False},
        {"norm": "layernorm"},
        {"final_norm": False},
        {"qk_norm": True},
        {"value_embeddings": True},
        {"embed_dim": 12},
    ],
    ids=str,
)
def test_a_flag_is_followed_or_refused_by_name(implementation, flag):
    model = Model(**SHAPE, **flag)
    how = dict(batch=1, tokens=8, implementation=implementation)
    try:
        weights = simulate(model, "bf16", Run.cpu(**how)).rows["weights"]
    except ValueError as error:
        assert "{}={!r}".format(*next(iter(flag.items()))) in str(error)
    else:
        assert weights == 2 * model.parameter_count
