"""What one rank holds: hand-computed cases, and what torch's own cutting says."""

import pytest
import torch

from memlab import Model, Recipe, Run, Sharding, estimate
from memlab.estimate import fullest_stage
from memlab.model import presets
from memlab.terms import activations, sharded_step, sharding

LLAMA = Model.preset("llama-3-8b")
TINY = Model.preset("tiny-llama")
ADAFACTOR = Recipe(optimizer="adafactor")


def over(**how):
    return Run(devices=Sharding.of(**how))


@pytest.mark.parametrize("count", [0, 1, 5, 7, 8, 9, 128, 1000])
@pytest.mark.parametrize("ranks", [1, 2, 3, 8, 64])
def test_parts_are_those_of_torch_chunk(count, ranks):
    chunks = [len(c) for c in torch.zeros(count).chunk(ranks)] if count else []
    chunks += [0] * (ranks - len(chunks))
    assert [sharding.held(count, ranks=ranks, rank=rank) for rank in range(ranks)] == chunks
    assert sharding.part(count, ranks=ranks) == chunks[0]


def test_llama_at_1024_ranks_by_hand():
    # rows: V 128,256 -> 126 (1,018 ranks have any), D 4,096 -> 4, K·H 1,024 -> 1, F 14,336 -> 14
    layer = 4 * 4096 * 2 + 1 * 4096 * 2 + 14 * 4096 * 2 + 4 * 14336 + 2 * 4
    values = 2 * 126 * 4096 + 32 * layer + 4
    ledger = estimate(LLAMA, "fp32", over(data=1024, zero=3))
    assert ledger["weights"].derived == ledger["gradients"].derived == 4 * values == 31_392_784
    assert ledger["optimizer"].derived == 8 * values + 4 * (32 * 9 + 3)


@pytest.mark.parametrize("zero", [0, 1, 2, 3])
def test_each_stage_divides_one_copy_more(zero):
    one = estimate(LLAMA, "zero")
    eight = estimate(LLAMA, "zero", over(data=8, zero=zero))
    for term in one:
        cut = sharding.divided(term, zero=zero)
        tensors = 4 * 291 if term == "optimizer" else 0  # step counters, one a tensor on each rank
        whole = one[term].derived - tensors
        # every tensor's rows are a multiple of 8, so nothing is padded here
        assert eight[term].derived == (whole // 8 if cut else whole) + tensors


def test_one_device_divides_nothing_whatever_its_zero():
    for name in presets():
        model = Model.preset(name)
        for recipe in ("fp32", "zero", "adamw8bit"):
            plain, cut = estimate(model, recipe), estimate(model, recipe, over(zero=3))
            assert plain.rows == cut.rows


@pytest.mark.parametrize("name", presets())
def test_stages_hold_every_tensor_once_and_a_tied_table_twice(name):
    model = Model.preset(name)
    cut = Sharding(pipeline=2)
    count = sum(t.count for stage in (0, 1) for t in cut.tensors(model, stage))
    again = model.vocab * model.embed_dim if model.tied else 0
    assert count == model.parameter_count + again


def test_tensor_parallel_divides_matrices_and_keeps_norms():
    two = estimate(TINY, "fp32", over(tensor=2))["weights"].derived
    norms = TINY.parameters()["norm"]
    assert two == 4 * ((TINY.parameter_count - norms) // 2 + norms)
    gpt2 = Model.preset("gpt2").replace(vocab=50256)
    shapes = {t.name: t.shape for t in Sharding(tensor=2).tensors(gpt2)}
    assert shapes["layers.attention.qkv"] == (768, 1152)  # Conv1D: [inputs, outputs]
    assert shapes["layers.attention.qkv.bias"] == (1152,)
    assert shapes["layers.attention.out"] == (384, 768)
    assert shapes["layers.attention.out.bias"] == (768,)
    assert shapes["positions"] == (1024, 768)


def test_the_fullest_stage_has_an_end_of_the_network():
    assert fullest_stage(LLAMA, "fp32", over(pipeline=4)) == 3  # head and final norm
    assert fullest_stage(LLAMA.replace(tied=True), "fp32", over(pipeline=3)) == 0  # a layer more
    last = estimate(LLAMA, "fp32", over(pipeline=4), stage=3)["weights"].derived
    middle = estimate(LLAMA, "fp32", over(pipeline=4), stage=1)["weights"].derived
    assert last - middle == 4 * (LLAMA.vocab * LLAMA.d_model + LLAMA.d_model)


def test_context_ranks_share_like_data_ranks():
    both = estimate(LLAMA, "fp32", over(data=2, context=4, zero=3)).total()
    assert both == estimate(LLAMA, "fp32", over(data=8, zero=3)).total()
    assert estimate(LLAMA, "fp32", over(context=4)).total() == estimate(LLAMA, "fp32").total()


def test_activations_by_hand_of_korthikanti():
    """With everything divided, a layer keeps exactly 1/t; without sequence, 1/t of the rest."""
    size = dict(batch=1, tokens=64, d_model=128, d_ff=352, heads=4, kv_heads=2, head_dim=32)
    whole = sharded_step.layer_activations(**size)
    assert whole == activations.llama_layer(**size)
    assert sharded_step.layer_activations(**size, tensor=2, regather=True) == whole // 2
    assert sharded_step.layer_activations(**size, context=4) == whole // 4
    halves = [sharded_step.layer_activations(**size, tensor=2, sequence=s) for s in (False, True)]
    assert whole // 2 < halves[1] < halves[0] < whole


def test_the_wire():
    """ZeRO's paper, section 7: stage 3 sends half as much again, where all are of one format."""
    sent = [sharded_step.wire(1000, gradients=1000, ranks=10**6, zero=zero) for zero in range(4)]
    assert sent == [2000, 2000, 2000, 3000]
    assert (
        sharded_step.wire(1000, gradients=1000, ranks=2) == 1000
        and sharded_step.wire(1000, gradients=1000, ranks=1) == 0
    )


def test_a_whole_tensor_is_the_floor_of_whole_tensors():
    counts = [t.numel for t in LLAMA.tensors() for _ in range(t.copies)]
    for ranks in (2, 8, 1024):
        loads = sharding.whole_tensors(counts, ranks=ranks)
        assert sum(loads) == LLAMA.parameter_count and max(loads) >= 128256 * 4096
    assert max(loads) == 128256 * 4096 and loads.count(0) == 1024 - 291


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: Sharding(data=0), ValueError, "data=0; at least 1 is needed"),
        (lambda: Sharding(zero=4), ValueError, "zero=4 is not a stage of ZeRO"),
        (lambda: Sharding(tensor=1.5), TypeError, "tensor=1.5"),
        (lambda: Run(devices=8), TypeError, "devices=8; a Sharding is needed"),
        (
            lambda: estimate(LLAMA, "fp32", over(tensor=3)),
            ValueError,
            r"tensor=3 does not divide K=8",
        ),
        (
            lambda: estimate(LLAMA, "fp32", over(pipeline=64)),
            ValueError,
            "stages=64 is more than L=32",
        ),
        (lambda: estimate(LLAMA, "fp32", over(pipeline=2), stage=2), ValueError, "stage=2 of 2"),
        (lambda: estimate(TINY, ADAFACTOR, over(zero=1)), ValueError, "zero=1"),
    ],
)
def test_wrong_input_fails_by_name(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_muon_keeps_one_state_of_a_matrix_however_it_is_cut():
    states = [
        estimate(LLAMA, Recipe(optimizer="muon"), over(data=8, zero=zero))["optimizer"]
        for zero in (1, 2, 3)
    ]
    assert len({row.derived for row in states}) == 1
