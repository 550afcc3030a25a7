"""terms.weights: the parameter formulas against the layers that torch builds."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from memlab.terms import weights

small = st.integers(1, 9)
flag = st.booleans()
untimed = settings(deadline=None)  # torch loads parts of itself at first use


def values(*modules: torch.nn.Module) -> int:
    return sum(p.numel() for module in modules for p in module.parameters())


def built(inputs: int, outputs: int, bias: bool = False) -> torch.nn.Linear:
    return torch.nn.Linear(inputs, outputs, bias=bias, device="meta")


@untimed
@given(small, small, flag)
def test_linear(inputs, outputs, bias):
    assert weights.linear(inputs, outputs=outputs, bias=bias) == values(
        built(inputs, outputs, bias)
    )


@untimed
@given(small, st.integers(1, 4), st.integers(1, 4), small, flag, flag)
def test_attention(d_model, kv_heads, group, head_dim, qkv_bias, out_bias):
    heads = kv_heads * group
    q = built(d_model, heads * head_dim, qkv_bias)
    k = built(d_model, kv_heads * head_dim, qkv_bias)
    out = built(heads * head_dim, d_model, out_bias)
    count = weights.attention(
        d_model,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        qkv_bias=qkv_bias,
        out_bias=out_bias,
    )
    assert count == values(q, k, k, out)
    # The docstring's formula.
    assert count == (
        2 * d_model * head_dim * (heads + kv_heads)
        + qkv_bias * (heads + 2 * kv_heads) * head_dim
        + out_bias * d_model
    )


@untimed
@given(small, small, flag, flag)
def test_feed_forward(d_model, d_ff, gated, bias):
    up, down = built(d_model, d_ff, bias), built(d_ff, d_model, bias)
    count = weights.feed_forward(d_model, d_ff=d_ff, gated=gated, bias=bias)
    assert count == values(up, down, *([up] if gated else []))
    assert count == (2 + gated) * d_model * d_ff + bias * ((1 + gated) * d_ff + d_model)


@untimed
@given(small)
def test_norm(width):
    assert weights.norm(width) == values(torch.nn.RMSNorm(width, device="meta"))
    assert weights.norm(width, bias=True) == values(torch.nn.LayerNorm(width, device="meta"))


@untimed
@given(small, small, st.integers(0, 2))
def test_tables(rows, width, offset):
    table = torch.nn.Embedding(rows, width, device="meta")
    assert weights.embedding(rows, d_model=width) == values(table)
    longer = torch.nn.Embedding(rows + offset, width, device="meta")
    assert weights.positions(rows, d_model=width, offset=offset) == values(longer)
    assert weights.value_embedding(rows, kv_heads=2, head_dim=width) == rows * 2 * width


def test_group_size_from_mha_to_mqa():
    assert [weights.group_size(32, kv_heads=kv_heads) for kv_heads in (32, 8, 1)] == [1, 4, 32]


@pytest.mark.parametrize("kv_heads", [5, 0, 64])
def test_heads_that_cannot_be_shared(kv_heads):
    message = rf"N=32 is not a multiple of K={kv_heads} \(query heads per key/value head\)"
    with pytest.raises(ValueError, match=message):
        weights.attention(64, heads=32, kv_heads=kv_heads, head_dim=2)


@pytest.mark.parametrize(
    "call",
    [
        lambda: weights.linear(-1, outputs=2),
        lambda: weights.linear(2, outputs=-1),
        lambda: weights.feed_forward(-1, d_ff=2, gated=True),
        lambda: weights.norm(-1),
        lambda: weights.embedding(-1, d_model=2),
        lambda: weights.positions(-1, d_model=2),
        lambda: weights.value_embedding(2, kv_heads=-1, head_dim=-2),
        lambda: weights.weights(-1, format="bf16"),
    ],
)
def test_negative_counts_are_named(call):
    with pytest.raises(ValueError, match="=-1 is negative"):
        call()


def test_weights_in_bytes():
    assert weights.weights(1000, format="bf16") == 2000
    assert weights.weights(1000, format="fp32") == 4000
    assert weights.weights(128 * 100, format="int8/128") == 128 * 100 + 4 * 100
    with pytest.raises(ValueError, match="bf17"):
        weights.weights(1000, format="bf17")
