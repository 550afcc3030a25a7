"""Checkpointing: gradients to the bit, and every byte and operation that was derived."""

import pytest
import torch
from torch.utils.checkpoint import checkpoint

from memlab import Model, Run
from memlab.lab.checkpoint import ATTENTION, MATMULS, again, keeping, plain, regroup
from memlab.lab.models import TinyGPT, TinyLlama
from memlab.lab.stack import run_stack
from memlab.lab.subject import subject
from memlab.measure import trace
from memlab.step import simulate
from memlab.step.core.moments import hills
from memlab.terms import checkpointing as terms
from memlab.terms.activations import llama_layer

MODEL = Model(layers=6, d_model=64, d_ff=192, heads=4, kv_heads=2, vocab=256, positions=64)
B, T = 2, 48
SHAPE = dict(batch=B, tokens=T, d_model=64, d_ff=192, heads=4, kv_heads=2, head_dim=16)
GRADIENT = 2 * 64 * 16 * (4 + 2) + 3 * 64 * 192 + 2 * 64  # values of one layer
OPERATORS = {"attention": ATTENTION, "matmuls": MATMULS}
OPERATORS["matmuls+attention"] = MATMULS + ATTENTION
# The plan; what a region keeps; whether it is a function of its own, with an output of its own
PLANS = {
    "none": ([(6, plain)], "input", False),
    "block": ([(1, keeping())] * 6, "input", False),
    "own": ([(1, again)] * 6, "input", True),
    "own segments": ([(3, again)] * 2, "input", True),
    "segments": ([(2, keeping())] * 3, "input", False),
    "every second": ([(1, keeping()), (1, plain)] * 3, "input", False),
    "every second, the other": ([(1, plain), (1, keeping())] * 3, "input", False),
    **{k: ([(1, keeping(*ops))] * 6, k, False) for k, ops in OPERATORS.items()},
}


def stack(plan, dtype=torch.float32):
    torch.manual_seed(0)
    ids = torch.randint(256, (B, T))
    return run_stack(regroup(TinyLlama(MODEL).to(dtype), plan), ids)


@pytest.fixture(scope="module")
def baseline():
    return stack([(6, plain)])


@pytest.mark.sample(10)
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("name", PLANS)
def test_held_and_peak_are_derived_to_the_byte(name, precision):
    plan, keep, own = PLANS[name]
    width = 4 if precision == "fp32" else 2
    seen = stack(plan, torch.float32 if width == 4 else torch.bfloat16)
    regions = [(n, way is not plain) for n, way in plan]
    block = llama_layer(**SHAPE, precision=precision)
    kept = terms.kept(**SHAPE, keep=keep, value_bytes=width)
    x = terms.kept(**SHAPE, value_bytes=width)
    extra = -kept + (x if own or "matmuls" in keep else 0)  # an output that nobody asks for
    if width == 2:
        extra += x  # the norms keep a copy of the input in fp32, and not the input
    room = terms.room(B, tokens=T, d_model=64, d_ff=192, value_bytes=width)
    assert seen.held == terms.held(regions, block=block, kept=kept)
    gradient = GRADIENT * width
    assert seen.peak == terms.backward_peak(
        regions, block=block, kept=kept, gradient=gradient, room=room, extra=extra
    )


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", PLANS)
def test_gradients_agree_to_the_bit_and_operations_are_derived(name, baseline):
    plan, keep, own = PLANS[name]
    seen = stack(plan)
    assert seen.same(baseline)
    forward, backward, more = terms.flops(**SHAPE, keep=keep)
    assert baseline.flops == 6 * (forward + backward)
    regions = [(n, way is not plain) for n, way in plan]
    more = forward if own else more  # without the early stop
    assert seen.flops - baseline.flops == terms.flops_again(regions, forward=forward, again=more)


def test_one_wrong_gradient_is_seen(baseline):
    seen = stack([(1, again)] * 6)
    seen.gradients[3][0] += 1e-6
    assert not seen.same(baseline)


def test_a_causal_kernel_skips_half_of_attention():
    """By hand: B·T·T·N·H pairs of a query and a key, of which a causal kernel skips half."""
    s = SHAPE
    rows, queries = s["batch"] * s["tokens"], s["heads"] * s["head_dim"]
    pairs = rows * s["tokens"] * queries
    whole, half = (terms.flops(**s, causal=causal) for causal in (False, True))
    assert [a - b for a, b in zip(whole, half, strict=True)] == [2 * pairs, 5 * pairs, 2 * pairs]
    assert terms.flops(**s, causal=True, keep="matmuls+attention")[2] == 0


def test_without_the_early_stop_a_whole_forward_pass_is_computed_again(baseline):
    seen = stack([(1, keeping(early_stop=False))] * 6)
    forward, _, _ = terms.flops(**SHAPE)
    assert seen.flops - baseline.flops == 6 * forward


def test_our_own_is_torchs_reentrant_one_to_the_byte():
    def reentrant(function, x, *more):
        return checkpoint(function, x, *more, use_reentrant=True)

    ours, torchs = stack([(2, again)] * 3), stack([(2, reentrant)] * 3)
    assert ours.same(torchs)
    assert (ours.held, ours.peak, ours.flops) == (torchs.held, torchs.peak, torchs.flops)


def test_dropout_draws_the_same_mask_twice():
    model = Model(layers=2, d_model=32, d_ff=64, heads=2, vocab=256, positions=32, family="gpt2")
    ids = torch.randint(256, (2, 16))
    found = []
    for way in (plain, again, keeping()):
        torch.manual_seed(0)
        net = regroup(TinyGPT(model, dropout=0.5), [(1, way)] * 2)
        net(ids, ids).backward()
        found.append([p.grad for p in net.parameters()] + [torch.rand(3)])
    for other in found[1:]:
        assert all(torch.equal(a, b) for a, b in zip(found[0], other, strict=True))


def test_a_regrouped_model_trains_the_same_weights_and_can_be_grouped_anew():
    net = TinyLlama(MODEL)
    before = {id(p) for p in net.parameters()}
    regroup(regroup(net, [(3, again)] * 2), [(1, again)] * 6)
    assert {id(p) for p in net.parameters()} == before and len(net.layers) == 6


def llama_backward(tokens, layers, size):
    """The hill of backward of Llama-3-8B in bf16, from the closed forms and what is outside."""
    wide = dict(batch=1, tokens=tokens, d_model=4096, d_ff=14336)
    shape = dict(**wide, heads=32, kv_heads=8, head_dim=128)
    x, room = terms.kept(**shape), terms.room(**wide)
    block = llama_layer(**shape, backend="cuda")
    gradient = 2 * (2 * 4096 * 128 * (32 + 8) + 3 * 4096 * 14336 + 2 * 4096)
    outside = 8 * tokens + 2 * (128256 + 1) * 4096 + 8  # ids, gradients of the head, scalars
    return (
        terms.backward_peak(
            terms.segments(layers, size=size),
            block=block,
            kept=x,
            gradient=gradient,
            room=room,
            extra=-x,
        )
        + outside
    )


def test_the_peak_of_a_whole_step_on_a_gpu_graph_too():
    llama, tokens = Model.preset("llama-3-8b"), 8192
    how = {"batch": 1, "tokens": tokens, "implementation": "memlab", "backend": "cuda"}
    step = simulate(llama, "bf16", Run.cpu(**how, checkpoint="block", optimizer_impl="fused"))
    resident = sum(step.rows[row] for row in ("weights", "buffers", "optimizer"))
    assert hills(step)["backward"].total() == llama_backward(tokens, 32, 1) + resident


def test_segments_of_llama_traced():
    model, tokens = Model.preset("llama-3-8b").replace(layers=6), 8192
    ids = torch.zeros(1, tokens, dtype=torch.long)

    def build():
        return regroup(
            subject(
                model,
                "bf16",
                Run(implementation="memlab"),
            ),
            [(3, keeping())] * 2,
        )

    backward = hills(trace(build, (ids, ids), Run()))["backward"]
    resident = sum(backward[row].traced for row in ("weights", "buffers", "optimizer"))
    assert backward.total("traced") == llama_backward(tokens, 6, 3) + resident


@pytest.mark.parametrize(("layers", "block", "best"), [(64, 1, 8), (100, 1, 10), (32, 21, 1)])
def test_segments_of_the_square_root_are_best_where_a_block_keeps_no_more_than_its_input(
    layers, block, best
):
    assert terms.best_size(layers, block=block, input=1) == best


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: again(torch.sin, torch.ones(2)), "the input asks for no gradient"),
        (lambda: regroup(TinyLlama(MODEL), [(4, again)]), r"\[4\] layers do not make the 6"),
        (lambda: regroup(TinyLlama(MODEL), [(6, again), (0, plain)]), r"\[6, 0\] layers"),
        (lambda: regroup(TinyLlama(MODEL), []), r"regions of \[\] layers"),
    ],
)
def test_wrong_input_is_refused_by_name(act, message):
    with pytest.raises(ValueError, match=message):
        act()
