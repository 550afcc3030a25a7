"""The pool of blocks hands out what its formula says, and a shared block reads as one's own."""

import pytest

torch = pytest.importorskip("torch")

from memlab.lab.block_pool import BlockPool  # noqa: E402
from memlab.model import Model  # noqa: E402
from memlab.terms import engine_pool  # noqa: E402

TINY = Model.preset("tiny-llama").replace(layers=1)


def kept(ids):
    """Stand-ins for keys and values that depend on all tokens up to theirs, as real ones do."""
    sums = torch.tensor(ids, dtype=torch.float32).cumsum(0)
    shape = (2 * TINY.layers, TINY.kv_heads, len(ids), TINY.head_dim)
    return sums.view(1, 1, -1, 1).expand(shape)


@pytest.mark.parametrize(("tokens", "prefix"), [(40, 0), (40, 15), (40, 16), (64, 33), (64, 63)])
def test_sequences_fit_as_derived_and_read_as_they_were(tokens, prefix):
    pool, count = BlockPool(TINY, 24, block=16), 0
    while True:
        ids = [*range(prefix), *(1000 * (count + 1) + i for i in range(tokens - prefix))]
        if not pool.admit(ids, kept(ids)):
            break
        assert torch.equal(pool.read(count, tokens), kept(ids))
        count += 1
    assert count == engine_pool.sequences(24, tokens=tokens, prefix=prefix)
    assert 0 not in {number for table in pool.tables for number in table}


def test_a_block_that_is_not_full_is_shared_with_nobody():
    pool = BlockPool(TINY, 8, block=16)
    for _ in range(2):
        assert pool.admit(list(range(20)), kept(list(range(20))))
    assert pool.tables[0][0] == pool.tables[1][0] and pool.tables[0][1] != pool.tables[1][1]


def test_empty_pools_are_refused():
    with pytest.raises(ValueError, match="count=0"):
        BlockPool(TINY, 0)
    with pytest.raises(ValueError, match="block=0"):
        BlockPool(TINY, 4, block=0)
