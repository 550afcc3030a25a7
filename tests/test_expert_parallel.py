"""A mixture whose experts live on real ranks, against one device and the derived bytes."""

import pytest

from memlab.lab import expert_parallel
from memlab.lab.ranks import on_ranks
from memlab.terms import experts

R, D, X, K, M = 40, 32, 8, 2, 24
WAYS = ("router", "even", "one rank")
RANKS = 4


@pytest.fixture(scope="module")
def found():
    return on_ranks(RANKS, expert_parallel.measured, WAYS, R, D, X, K, M)


@pytest.mark.parametrize("rank", range(RANKS))
@pytest.mark.parametrize("way", WAYS)
def test_a_rank_saves_what_follows_from_its_rows(found, way, rank):
    got = found[rank][way]
    sizes = {"d_model": D, "experts": X, "experts_per_token": K, "expert_ff": M, "ranks": RANKS}
    assert got["agrees"]
    assert got["saved"] == experts.kept_divided(R, **sizes, rows=got["arrived"], format="fp32")
    assert got["weights"] == 4 * X // RANKS * experts.expert(D, expert_ff=M)


def test_rows_arrive_as_the_routing_says(found):
    told = {"experts": X, "experts_per_token": K, "ranks": RANKS}
    rows = {way: [found[rank][way]["arrived"] for rank in range(RANKS)] for way in WAYS}
    assert rows["even"] == [experts.arriving(R, **told)] * RANKS
    assert rows["one rank"] == [experts.arriving(R, **told, even=False), 0, 0, 0]
    assert sum(rows["router"]) == RANKS * R * K and len(set(rows["router"])) > 1


def test_an_unknown_routing_is_named():
    with pytest.raises(ValueError, match="way='best'; known: router, even, one rank"):
        expert_parallel.routed("best", 4, experts=4, per_token=2)
