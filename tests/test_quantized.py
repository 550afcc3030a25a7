"""Inference with widened weights: derived bytes against every storage of a forward pass."""

import pytest

torch = pytest.importorskip("torch")

from memlab import Model, Recipe, estimate  # noqa: E402
from memlab.lab.generate import Cache, read  # noqa: E402
from memlab.lab.models import TinyLlama  # noqa: E402
from memlab.lab.quantized_linear import quantize_  # noqa: E402
from memlab.measure import Tracker, storage_bytes  # noqa: E402
from memlab.step.closed.own_calls import decode, prefill  # noqa: E402
from memlab.step.closed.quantized import weight_only, widening  # noqa: E402

SHAPE = {"layers": 2, "d_model": 64, "heads": 4, "kv_heads": 2, "positions": 128}
SHAPES = {
    "llama": Model(**SHAPE, d_ff=192, vocab=96),
    "many words": Model(**SHAPE, d_ff=64, vocab=640),
    "wide heads, tied": Model(**SHAPE, d_ff=128, vocab=96, head_dim=64, family="qwen3", tied=True),
}


def peak(model, format, tokens, past, head, pieces):
    """The derived ledger and the tracker that saw the same tokens read."""
    torch.manual_seed(0)
    net = TinyLlama(model).to(torch.bfloat16).requires_grad_(False)
    quantize_(net, format, skip=() if head else ("lm_head",), pieces=pieces)
    ids = torch.randint(model.vocab, (1, past + tokens))
    cache = Cache(model, 1, 128, dtype=torch.bfloat16)
    if past:
        read(net, ids[:, :past], cache)
    new = ids[:, past:].clone()
    with Tracker() as tracker:
        tracker.label(net)
        tracker.label(new, "inputs")
        tracker.label([cache.keys, cache.values], "kv_cache")
        read(net, new, cache)
    how = {"batch": 1, "tokens": tokens, "past": past, "cache": "preallocated", "capacity": 128}
    return weight_only(model, format, **how, head=head, pieces=pieces), tracker, net


@pytest.mark.sample(11)
@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("format", ["int8/32:bf16", "int4/64:bf16"])
@pytest.mark.parametrize(("tokens", "past"), [(100, 0), (1, 100)])
@pytest.mark.parametrize("pieces", [1, 4])
def test_the_peak_has_the_written_out_weight(name, format, tokens, past, pieces):
    model = SHAPES[name]
    for head in (False,) if model.tied else (False, True):
        derived, tracker, net = peak(model, format, tokens, past, head, pieces)
        assert derived["weights"].derived == storage_bytes(list(net.parameters()))
        assert derived.total() == tracker.peak, (derived, tracker.contents(at="peak"))
        held = tracker.contents(at="peak")
        assert held["kv_cache"] == derived["kv_cache"].derived


def test_a_peak_elsewhere_moves_by_the_weights_alone():
    model, how = SHAPES["many words"], {"batch": 8, "cache": "preallocated", "capacity": 128}
    narrow = weight_only(model, "int8/32:bf16", tokens=100, **how)
    wide = prefill(model, tokens=100, **how)
    assert narrow["widened"].derived == 0
    gap = narrow["weights"].derived - wide["weights"].derived
    assert narrow.total() - wide.total() == gap < 0


def test_one_token_of_a_narrow_model_needs_more_beside_its_weights():
    model, how = SHAPES["llama"], {"batch": 1, "cache": "preallocated", "capacity": 128}
    narrow = weight_only(model, "int4/64:bf16", tokens=1, past=9, **how)
    wide = decode(model, tokens=9, **how)
    beside = [ledger.total() - ledger["weights"].derived for ledger in (narrow, wide)]
    assert beside[0] > beside[1] and narrow["kv_cache"].derived == wide["kv_cache"].derived
    assert narrow["widened"].derived == widening(192, 64, 4, 1)[0]


def test_a_weight_of_4_bits_takes_4_bytes_a_value_while_it_is_written_out():
    assert widening(1024, 4096, 8, 1) == (2 * 2**22, 2 * 2**22)
    assert widening(1024, 4096, 4, 1) == (4 * 2**22 + 2 * 528, 2 * 2**22)
    assert widening(1024, 4096, 8, 3, pieces=4) == (2**21, 2**21 + 3 * 256 * 2)


def test_a_recipe_may_leave_the_head_alone():
    llama = Model.preset("llama-3-8b")
    with_head, without = (
        estimate(llama, Recipe(weights="nf4", other="bf16", head=head))["weights"].derived
        for head in (None, "bf16")
    )
    P = llama.vocab * llama.d_model
    assert without - with_head == 2 * P - P // 2 - P // 64 * 4
    with pytest.raises(ValueError, match="head: unknown format 'int5'"):
        Recipe(head="int5")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: widening(8, 8, 6, 1), "bits=6; codes of 4 and of 8 bits are known"),
        (lambda: widening(8, 8, 8, 1, pieces=3), "8 rows do not divide into pieces=3"),
        (
            lambda: weight_only(SHAPES["llama"], "nf4", batch=1, tokens=1),
            "nf4 has no scales in bf16; give it some",
        ),
        (
            lambda: weight_only(Model.preset("gpt2"), "int8/32:bf16", batch=1, tokens=1),
            "gpt2 has no gates",
        ),
    ],
)
def test_wrong_input_is_refused_by_name(call, message):
    with pytest.raises(ValueError, match=message):
        call()
