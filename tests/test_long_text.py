"""Attention over a text that real ranks share, against one device and the derived bytes."""

import pytest
import torch

from memlab.lab import long_text
from memlab.lab.ranks import on_ranks
from memlab.terms import divided_text

SHAPE = {"tokens": 64, "heads": 8, "kv_heads": 4, "head_dim": 16}
RANKS = 4


@pytest.fixture(scope="module")
def found():
    return on_ranks(RANKS, long_text.measured, long_text.WAYS, *SHAPE.values())


@pytest.mark.parametrize("rank", range(RANKS))
@pytest.mark.parametrize("way", long_text.WAYS)
def test_each_way_gives_what_one_device_gives_and_holds_what_is_derived(found, way, rank):
    sizes = SHAPE | {"ranks": RANKS, "value_bytes": 4}
    got = found[rank][way]
    assert got["agrees"]
    assert got["saved"] == divided_text.saved(1, **sizes)
    assert got["sent"] == divided_text.sent(1, **sizes, way=way)
    q, kv, numbers = divided_text._parts(1, *SHAPE.values(), RANKS, 4)
    moving = divided_text.buffers(1, **sizes, way=way)
    merged = 2 * q + 3 * numbers if rank else q + numbers  # nothing comes before rank 0's text
    expected = {
        "gathered": moving + merged,
        "ring": max(moving + q + numbers, moving // 2 + merged),
        "ulysses": moving + 2 * q + kv + numbers,
    }
    assert got["peak"] - (q + kv) == expected[way]


def test_two_softmaxes_merge_into_one():
    draw = torch.manual_seed(0)
    q, k, v = (torch.randn(1, 2, n, 8, generator=draw) for n in (5, 12, 12))
    whole, whole_lse = long_text.flash(q, k, v, 0.0, False)
    halves = [
        [x.clone() for x in long_text.flash(q, k[:, :, part], v[:, :, part], 0.0, False)]
        for part in (slice(0, 4), slice(4, 12))
    ]
    out, lse = halves[0]
    long_text.merge(out, lse, *halves[1])
    assert torch.allclose(out, whole, atol=1e-6) and torch.allclose(lse, whole_lse, atol=1e-6)


def test_an_unknown_way_is_named():
    with pytest.raises(ValueError, match="way='torus'; known: gathered, ring, ulysses"):
        long_text.attention(None, None, None, None, "torus")
