"""FP8: the closed forms against what autograd keeps, the products against plain ones."""

import ast
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

from memlab import Model
from memlab.lab import fp8
from memlab.lab.fp8 import E4M3, E5M2, FP8Recipe, cast, product
from memlab.lab.models import TinyLlama
from memlab.lab.scaled_mm import quick_on_a_cpu, scaled_mm
from memlab.measure import Saved, Tracker, storage_bytes
from memlab.terms import activations
from memlab.terms import fp8 as terms

MODEL = Model(layers=2, d_model=64, d_ff=96, heads=4, kv_heads=2, vocab=80, positions=32)
KINDS = [(scaling, keep) for scaling in fp8.SCALING for keep in fp8.KEEP]


def head(weight):
    return weight.shape[0] == MODEL.vocab


def layer(rows=48, inputs=64, outputs=96):
    torch.manual_seed(0)
    linear = nn.Linear(inputs, outputs, bias=False, dtype=torch.bfloat16)
    x = torch.randn(rows, inputs).bfloat16().requires_grad_()
    return linear, x, torch.randn(rows, outputs).bfloat16()


def run(recipe, linear, x, g):
    linear.zero_grad()
    x.grad = None
    with Saved(exclude=linear) as kept, fp8.autocast(recipe):
        y = linear(x)
    y.backward(g)
    return kept.bytes, (y.detach(), x.grad, linear.weight.grad)


def off(found, wanted):
    return float((found.float() - wanted.float()).norm() / wanted.float().norm())


@pytest.mark.parametrize("dtype", [E4M3, E5M2])
@pytest.mark.parametrize("along", [None, 0, -1])
def test_the_largest_value_becomes_the_largest_of_the_format(dtype, along):
    x = torch.randn(33, 17) * 10.0 ** torch.randint(-6, 7, (33, 17))
    values, scale = cast(x, dtype, along)
    assert values.dtype == dtype and values.float().isfinite().all()
    largest = values.float().abs()
    assert (
        (largest.max() if along is None else largest.amax(along)).eq(torch.finfo(dtype).max).all()
    )
    assert scale.numel() == {None: 1, 0: 17, -1: 33}[along]


def test_a_cast_errs_by_half_a_step_at_most():
    x = 1 + torch.rand(1000)
    values, scale = cast(x, E4M3)
    assert ((values.float() * scale - x).abs() <= x / 16).all()  # half of 2 ** -3


def test_zeros_stay_zeros():
    values, scale = cast(torch.zeros(4, 4), E4M3)
    assert not values.float().any() and scale > 0


@pytest.mark.parametrize("scaling", fp8.SCALING)
def test_the_kernel_and_its_emulation_agree(scaling):
    recipe = FP8Recipe(scaling)
    a, b = recipe.cast(torch.randn(48, 64), -1, E5M2), recipe.cast(torch.randn(64, 32), 0)
    kernel = product(a, b, torch.float32)
    assert fp8.kernel_takes(a[0], b[0])
    assert off(kernel, product(a, b, torch.float32, emulate=True)) < 1e-3
    plain = (a[0].float() * a[1]) @ (b[0].float() * b[1])
    assert off(kernel, plain) < 1e-3


@pytest.mark.parametrize("along", [None, -1])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_on_a_cpu_the_operator_gives_the_numbers_of_torchs_own_kernel(along, dtype):
    a, b = cast(torch.randn(48, 64), E5M2, along), cast(torch.randn(32, 64), E4M3, along)
    factors = a[0], b[0].t(), a[1], b[1].t()
    quick_on_a_cpu()
    # Torch's kernel with a place for its result is another operator, which nobody replaced.
    wanted = torch.empty(48, 32, dtype=dtype)
    torch._scaled_mm(*factors, out_dtype=dtype, out=wanted)
    with Tracker() as tracker:
        found = torch._scaled_mm(*factors, out_dtype=dtype)
    assert torch.equal(found, scaled_mm(*factors, out_dtype=dtype))
    assert found.dtype == dtype and off(found, wanted) < (1e-2 if dtype == torch.bfloat16 else 1e-3)
    assert tracker.peak == storage_bytes(*factors, found)  # dequantized copies are its own affair


@pytest.mark.parametrize("shape", [(48, 60, 32), (48, 64, 40)])
def test_sides_that_the_kernel_refuses_are_emulated(shape):
    M, K, N = shape
    a, b = cast(torch.randn(M, K)), cast(torch.randn(K, N))
    assert not fp8.kernel_takes(a[0], b[0])
    assert product(a, b, torch.bfloat16).shape == (M, N)


def test_no_kernel_on_another_device():
    assert not fp8.kernel_takes(*(torch.empty(16, 16, device="meta") for _ in range(2)))


@pytest.mark.parametrize(("scaling", "keep"), KINDS)
@pytest.mark.parametrize("emulate", [False, True])
@pytest.mark.parametrize("rows", [48, 50])  # 50: the gradient of the weight is emulated
def test_a_layer_keeps_what_was_derived_and_computes_nearly_the_same(scaling, keep, emulate, rows):
    linear, x, g = layer(rows)
    kept, found = run(FP8Recipe(scaling, keep, emulate=emulate), linear, x, g)
    assert kept == terms.linear(rows, inputs=64, outputs=96, keep=keep, scaling=scaling)
    y = F.linear(x, linear.weight)
    wanted = (y.detach(), *torch.autograd.grad(y, (x, linear.weight), g))
    same = [(a.dtype, a.shape) == (b.dtype, b.shape) for a, b in zip(found, wanted, strict=True)]
    assert all(same)
    # e4m3 rounds by 1/16 at most and about 1/40 on average, e5m2 by twice that; two factors each.
    errors = [off(a, b) for a, b in zip(found, wanted, strict=True)]
    assert errors[0] < 0.05 and max(errors[1:]) < 0.09


def test_a_bias_is_added_and_gets_its_gradient():
    linear = nn.Linear(32, 16)
    x = torch.randn(2, 8, 32)
    with fp8.autocast():
        y = linear(x)
        alone = F.linear(x, linear.weight, bias=None)
    assert y.shape == (2, 8, 16) and torch.equal(y, alone + linear.bias)
    y.sum().backward()
    assert torch.equal(linear.bias.grad, torch.full((16,), 16.0))


@pytest.mark.parametrize("copies", [1, 2])
@pytest.mark.parametrize("scaling", fp8.SCALING)
def test_the_break_even_is_where_the_bytes_cross(scaling, copies):
    for inputs, outputs in ((64, 96), (4, 10), (7, 3)):
        how = dict(inputs=inputs, outputs=outputs)
        narrow = dict(keep="fp8+weight", scaling=scaling, copies=copies)
        at = terms.break_even(**how, scaling=scaling, copies=copies)
        assert terms.linear(at, **how, **narrow) < terms.linear(at, **how, keep="original")
        before = terms.linear(at - 1, **how, **narrow)
        assert before >= terms.linear(at - 1, **how, keep="original")


def test_on_hopper_a_weight_is_kept_twice():
    """By hand: x 10 · 4 bytes, W 6 · 4 bytes twice, a scale of 4 bytes for each of the three."""
    assert terms.linear(10, inputs=4, outputs=6, keep="fp8+weight", copies=2) == 40 + 48 + 12
    assert terms.break_even(4096, outputs=14336, copies=2) == 2 * 14336 + 1


def saved_by_a_model(recipe):
    torch.manual_seed(0)
    net, ids = TinyLlama(MODEL).bfloat16(), torch.randint(80, (2, 16))
    with Saved(exclude=net) as kept, fp8.autocast(recipe, skip=head):
        loss = net(ids, ids)
    loss.backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in net.parameters())
    return kept.bytes


@pytest.mark.parametrize(("scaling", "keep"), KINDS)
@pytest.mark.parametrize("shared", [True, False])
def test_a_model_keeps_what_was_derived(scaling, keep, shared):
    shape = dict(batch=2, tokens=16, d_model=64, d_ff=96, heads=4, kv_heads=2, head_dim=16)
    derived = terms.llama_layer(**shape, keep=keep, scaling=scaling, shared=shared)
    derived -= activations.llama_layer(**shape)
    found = saved_by_a_model(FP8Recipe(scaling, keep, share=shared))
    assert found - saved_by_a_model(FP8Recipe(keep="original")) == 2 * derived


def test_original_keeps_as_much_as_bf16():
    net, ids = TinyLlama(MODEL).bfloat16(), torch.randint(80, (2, 16))
    with Saved(exclude=net) as kept:
        net(ids, ids)
    assert saved_by_a_model(FP8Recipe(keep="original")) == kept.bytes


@pytest.mark.parametrize("recipe", [FP8Recipe(), FP8Recipe(keep="original"), FP8Recipe("row")])
def test_nothing_outlives_the_step_but_gradients(recipe):
    net, ids = TinyLlama(MODEL).bfloat16(), torch.randint(80, (2, 16))
    with Tracker() as tracker, fp8.autocast(recipe, skip=head):
        tracker.label(net)
        tracker.label(ids, "inputs")
        loss = net(ids, ids)
        loss.backward()
        del loss
    held = {name for name, size in tracker.contents().items() if size}
    assert held == {"weights", "buffers", "gradients", "inputs"}


def test_what_autograd_does_not_keep_the_mode_does_not_keep_either():
    net, ids = TinyLlama(MODEL).bfloat16(), torch.randint(80, (2, 16))
    for recipe in (FP8Recipe(keep="original"), FP8Recipe("row"), FP8Recipe()):
        mode = fp8.autocast(recipe, skip=head)
        with mode:
            loss = net(ids, ids)
        assert not len(mode.copies), recipe
        del loss


def test_a_changed_input_is_cast_anew():
    linear, x, _ = layer()
    x = x.detach()
    with torch.no_grad(), fp8.autocast():
        first = linear(x)
        x.mul_(2)
        second = linear(x)
    assert torch.equal(second, 2 * first)  # scaling is exact, but for the scale's own rounding


def test_a_checkpoint_that_computes_again_in_fp8_gives_the_same_gradient():
    linear, x, g = layer()
    _, (_, to_x, to_weight) = run(FP8Recipe(), linear, x, g)
    linear.zero_grad()
    x.grad = None
    contexts = {"context_fn": lambda: (nullcontext(), fp8.autocast())}
    with fp8.autocast():
        y = checkpoint(linear, x, use_reentrant=False, **contexts)
    y.backward(g)
    assert torch.equal(x.grad, to_x) and torch.equal(linear.weight.grad, to_weight)


def test_the_program_is_as_short_as_its_chapter_says():
    tree = ast.parse(Path(fp8.__file__).read_text(encoding="utf-8"))
    said = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(
            node
        ):
            said |= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    lines = enumerate(Path(fp8.__file__).read_text(encoding="utf-8").splitlines(), start=1)
    code = [i for i, line in lines if i not in said and line.strip() and line.strip()[0] != "#"]
    assert len(code) < 100


@pytest.mark.parametrize("wrong", [{"scaling": "block"}, {"keep": "bf16"}])
def test_unknown_words_are_named(wrong):
    (name, value), *_ = wrong.items()
    with pytest.raises(ValueError, match=f"{name}='{value}' is unknown; known: "):
        FP8Recipe(**wrong)
