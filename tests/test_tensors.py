"""tensors and parameters: against nanochat's layout, and against each other for any flags."""

import math
from collections import Counter

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import Embedding, Linear, ModuleDict, ModuleList, Parameter

from memlab.families import FLAGS, NAMES, record_of
from memlab.model import Model
from memlab.model.latent import Latent


class NanochatParameters(torch.nn.Module):
    """The parameters of nanochat's GPT at a given depth: no forward, nothing else.

    Source  https://github.com/karpathy/nanochat/blob/master/nanochat/gpt.py and
            scripts/base_train.py (width from depth)
    """

    def __init__(self, depth: int, vocab: int = 32768, head: int = 128, aspect: int = 64):
        super().__init__()
        width = math.ceil(depth * aspect / head) * head
        rows = math.ceil(vocab / 64) * 64
        with_value_embedding = range((depth - 1) % 2, depth, 2)

        def matrix(inputs, outputs):
            return Linear(inputs, outputs, bias=False)

        self.embedding = Embedding(rows, width)
        self.layers = ModuleList()
        for i in range(depth):
            layer = ModuleDict({n: matrix(width, width) for n in ("q", "k", "v", "out")})
            layer["up"], layer["down"] = matrix(width, 4 * width), matrix(4 * width, width)
            if i in with_value_embedding:
                layer["value_gate"] = matrix(12, width // head)
            self.layers.append(layer)
        self.value_embeddings = ModuleList(Embedding(rows, width) for _ in with_value_embedding)
        self.resid_lambdas = Parameter(torch.ones(depth))
        self.x0_lambdas = Parameter(torch.zeros(depth))
        self.smear_gate = matrix(24, 1)
        self.smear_lambda = Parameter(torch.zeros(1))
        self.backout_lambda = Parameter(torch.ones(1))
        self.lm_head = matrix(width, rows)


@pytest.mark.parametrize("depth", [26, 1, 4, 5])
def test_nanochat(depth):
    with torch.device("meta"):
        real = NanochatParameters(depth)
    d26 = Model.preset("nanochat-d26")
    width = real.embedding.embedding_dim
    model = d26.replace(layers=depth, d_model=width, d_ff=4 * width, heads=width // 128)
    assert model.head_dim == 128 and (depth != 26 or model.replace(name=d26.name) == d26)
    ours: Counter = Counter()
    for t in model.tensors():
        ours[t.shape] += t.copies
    assert ours == Counter(tuple(p.shape) for p in real.parameters())
    matmuls = Counter(
        tuple(m.weight.shape) for m in real.modules() if isinstance(m, torch.nn.Linear)
    )
    assert matmuls == sum(
        (Counter({t.shape: t.copies}) for t in model.tensors() if t.linear), Counter()
    )
    assert model.parameter_count == sum(p.numel() for p in real.parameters())
    assert model.parameters()["value_embedding"] == sum(
        p.numel() for p in real.value_embeddings.parameters()
    )


@st.composite
def models(draw):
    kv_heads, flag = draw(st.integers(1, 3)), st.booleans()
    flags = {name: draw(flag) for name, default in FLAGS.items() if isinstance(default, bool)}
    family, layers, mixed = draw(st.sampled_from(NAMES)), draw(st.integers(1, 5)), {}
    if record_of(family).mixture:
        k = draw(st.integers(1, 3))
        mixed = {"experts": k + draw(st.integers(0, 3)), "experts_per_token": k}
        mixed |= {"expert_ff": draw(st.integers(1, 9)), "shared_ff": draw(st.integers(0, 9))}
        mixed["dense_layers"] = tuple(range(draw(st.integers(0, layers))))
    heads = {"head_dim": draw(st.integers(1, 5)), "heads": kv_heads * draw(st.integers(1, 3))}
    if record_of(family).latent:
        sizes = {name: draw(st.integers(1, 5)) for name in ("kv_rank", "nope", "value")}
        sizes |= {"rope": 2 * draw(st.integers(1, 3)), "q_rank": draw(st.integers(0, 4))}
        heads = {"latent": Latent(**sizes), "heads": kv_heads}
    return Model(
        family=family,
        layers=layers,
        d_model=draw(st.integers(1, 12)),
        d_ff=draw(st.integers(1, 12)),
        kv_heads=kv_heads,
        **heads,
        embed_dim=draw(st.integers(1, 12)),
        vocab=draw(st.integers(1, 20)),
        positions=draw(st.integers(1, 20)),
        norm=draw(st.sampled_from(["rmsnorm", "layernorm"])),
        **flags,
        **mixed,
    )


@settings(deadline=None)
@given(models())
def test_tensors_and_formulas_agree(model):
    from_tensors = dict.fromkeys(model.parameters(), 0)
    for t in model.tensors():
        assert t.count == t.numel * t.copies == math.prod(t.shape) * t.copies
        from_tensors[t.component] += t.count
    assert from_tensors == model.parameters()
    assert len({t.name for t in model.tensors()}) == len(model.tensors())
