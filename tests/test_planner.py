"""The planner: what it says fits does, what it says does not, does not; products are counted."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from memlab import GiB, MiB, Model
from memlab.cases.planner import (
    LOSS_TRAFFIC,
    OWN_BLOCKS,
    RTX_4090,
    SMALL_WIDE,
    flops_per_token,
    intensity,
    plan,
    seconds_per_token,
)
from memlab.estimate import peak
from memlab.fit import limit_of
from memlab.lab.models import TinyLlama

SPARING = OWN_BLOCKS.replace(loss="chunked", loss_chunks=64, checkpoint="block")


def test_the_model_is_the_one_whose_figures_are_known():
    V, D, E = SMALL_WIDE.vocab, SMALL_WIDE.d_model, SMALL_WIDE.embed_dim
    assert V * D - (V * E + E * D) == 127_904_896
    assert SMALL_WIDE.parameter_count == 196_496_768
    # The note's 187.3, 374.5 and 1,872.6 MiB: the matrices, with one projection for both ends.
    matrices = SMALL_WIDE.parameter_count - SMALL_WIDE.parameters()["norm"] - E * D
    assert [round(each * matrices / MiB, 1) for each in (1, 2, 10)] == [187.3, 374.5, 1872.6]


def test_a_stage_that_fits_is_one_piece():
    (stage,) = plan(SMALL_WIDE, [(8, 8192)], run=SPARING, on="RTX 4090")
    assert (stage.batch, stage.pieces) == (8192, 1)
    assert stage.whole == stage.peak < limit_of("RTX 4090")[0]


def test_a_stage_that_does_not_is_cut_into_the_fewest_pieces():
    (stage,) = plan(SMALL_WIDE, [(128, 1024)], on="RTX 4090")
    limit, _ = limit_of("RTX 4090")

    def held(batch):
        run = OWN_BLOCKS.replace(batch=batch, tokens=128, micro_batches=2)
        return peak(SMALL_WIDE, "bf16", run)

    assert stage.whole > limit >= stage.peak == held(stage.batch)
    assert held(stage.batch + 1) > limit
    assert stage.batch * (stage.pieces - 1) < 1024 <= stage.batch * stage.pieces


def test_where_nothing_fits_there_are_no_pieces():
    (stage,) = plan(SMALL_WIDE, [(128, 4)], on=GiB)
    assert (stage.batch, stage.pieces) == (0, 0)


@pytest.mark.parametrize("change", [{}, {"tied": True}, {"tied": True, "embed_dim": 32}])
def test_products_are_those_that_torch_counts(change):
    model = Model.preset("tiny-llama").replace(**change)
    net, tokens = TinyLlama(model), 32
    ids = torch.zeros(2, tokens, dtype=torch.long)
    with FlopCounterMode(display=False) as counter:
        net(ids, ids).backward()
    counts = {str(op): n for op, n in counter.get_flop_counts()["Global"].items()}
    products = sum(n for op, n in counts.items() if op in ("aten.mm", "aten.addmm", "aten.bmm"))
    attention = 6 * model.layers * model.heads * model.head_dim * tokens
    assert products == 2 * tokens * (flops_per_token(model, tokens) - attention)


def test_the_roof():
    assert 163 < RTX_4090.ridge("bf16") < 165
    assert sum(LOSS_TRAFFIC.values()) == 42
    # A narrow head moves more than it computes; a square layer of the same model does not.
    assert intensity(131_072, 128, SMALL_WIDE.vocab) < RTX_4090.ridge("bf16")
    assert intensity(131_072, 768, 768) > RTX_4090.ridge("bf16")
    times = seconds_per_token(SMALL_WIDE, 8, RTX_4090)
    assert times["logits"] == pytest.approx(42 * 200_005 / 1008e9)
    assert times["products"] > seconds_per_token(SMALL_WIDE, 8, RTX_4090, "fp8")["products"]
