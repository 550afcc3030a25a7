"""A card on a machine without one: closed forms of what each block keeps on it, exactly."""

import random

import pytest
import torch
import torch.nn.functional as F
from fake_card import on_card
from small_models import GPTBlock, LlamaBlock
from torch import nn
from torch.utils.checkpoint import checkpoint

from memlab import Model
from memlab.lab.models.gpt import GPTLayer
from memlab.measure import saved
from memlab.measure.fake_cuda.attention import choose
from memlab.measure.step_tracker import StepTracker

BF16, FP32 = torch.bfloat16, torch.float32


def kept(block, dtype, autocast, s, b, h, head):
    """Bytes that `block` keeps for backward on CUDA, without its input and its tables."""
    x = torch.empty(b, s, h, dtype=dtype, requires_grad=True)
    tables = [torch.empty(s, head, dtype=dtype)] * 2 if isinstance(block, LlamaBlock) else []
    tables += [torch.ones(s, s, dtype=torch.bool)] if isinstance(block, GPTBlock) else []
    with torch.autocast("cuda", BF16, enabled=autocast):
        return saved(lambda: block(x, *tables), exclude=[block, x, tables])


def build(kind, dtype, h, a, kv, f):
    torch.set_default_dtype(dtype)  # .to(dtype) does not work on fake tensors
    try:
        if kind == "llama":
            return LlamaBlock(h, a, kv, f)
        if kind == "gpt eager":
            return GPTBlock(h, a)
        model = Model(family="gpt2", layers=1, d_model=h, d_ff=4 * h, heads=a, vocab=9, positions=9)
        return GPTLayer(model, dropout=0.1)
    finally:
        torch.set_default_dtype(FP32)


# s tokens, b batch, h width, a query heads, k key/value heads, f feed-forward width; a block's own
# input x is not in these. Korthikanti et al. 2022 (arXiv:2205.05198) count 34sbh + 5as²b for the
# third with x, and leave out LayerNorm's two fp32 numbers a row.
FORMS = {
    "llama bf16": (
        ("llama", BF16, False),
        lambda s, b, h, a, k, f: (
            10 * s * b * h + 4 * s * b * h * k // a + 8 * s * b * f + 4 * a * b * s + 8 * s * b + 24
        ),
    ),
    "llama fp32": (
        ("llama", FP32, False),
        lambda s, b, h, a, k, f: (
            20 * s * b * h
            + 8 * s * b * h * k // a
            + 16 * s * b * f
            + 4 * a * b * s
            + 8 * s * b
            + 24
        ),
    ),
    "gpt bf16 eager": (
        ("gpt eager", BF16, False),
        lambda s, b, h, a, k, f: 32 * s * b * h + 5 * a * s * s * b + 16 * s * b,
    ),
    "gpt bf16 flash": (
        ("gpt sdpa", BF16, False),
        lambda s, b, h, a, k, f: 32 * s * b * h + 4 * a * b * s + 16 * s * b + 24,
    ),
    # Under autocast a bf16 copy of every weight stays, and each linear casts its input again.
    "llama autocast": (
        ("llama", FP32, True),
        lambda s, b, h, a, k, f: (
            18 * s * b * h
            + 4 * s * b * h * k // a
            + 8 * s * b * f
            + 4 * a * b * s
            + 8 * s * b
            + 24
            + 2 * (2 * h * h + 2 * h * h * k // a + 3 * h * f)
        ),
    ),
    "gpt autocast eager": (
        ("gpt eager", FP32, True),
        lambda s, b, h, a, k, f: 34 * s * b * h + 7 * a * s * s * b + 16 * s * b + 24 * h * h,
    ),
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", FORMS)
def test_a_block_keeps_what_the_closed_form_says(name):
    (kind, dtype, autocast), form = FORMS[name]
    draw = random.Random(name)
    with on_card(kernel="flash"):
        for _ in range(5):
            k = draw.choice([1, 2, 4])
            a, head = k * draw.choice([1, 2, 3]), draw.choice([8, 16, 32])
            s, b, f = draw.randrange(3, 40), draw.randrange(1, 4), draw.choice([40, 96, 160])
            h = a * head
            block = build(kind, dtype, h, a, k, f)
            found = kept(block, dtype, autocast, s, b, h, head)
            assert found.bytes == form(s, b, h, a, k, f), (s, b, h, a, k, f, found)


def test_efficient_attention_keeps_its_sums_padded_to_32_tokens():
    s, b, a, head, f = 37, 2, 3, 16, 40
    h = a * head
    with on_card():
        found = kept(build("llama", FP32, h, a, a, f), FP32, False, s, b, h, head)
    sums = 4 * a * b * 64 + 8 + 8  # and the state of the random numbers: seed and offset
    assert found.bytes == 28 * s * b * h + 16 * s * b * f + 8 * s * b + sums


@pytest.mark.parametrize(
    "dtype, shape, masked, kernel",
    [
        (BF16, (2, 4, 8, 64), False, "flash"),
        (BF16, (2, 4, 8, 64), True, "efficient"),
        (FP32, (2, 4, 8, 64), False, "efficient"),
        (FP32, (2, 4, 8, 30), False, "math"),
        (BF16, (2, 4, 8, 320), False, "efficient"),
        (torch.float64, (2, 4, 8, 64), False, "math"),
    ],
)
def test_the_kernel_follows_pytorchs_rules(dtype, shape, masked, kernel):
    q = k = v = torch.empty(shape, dtype=dtype, device="meta")
    mask = torch.empty(8, 8, dtype=torch.bool, device="meta") if masked else None
    assert choose(q, k, v, mask, False) == kernel


def test_grouped_queries_have_flash_or_nothing():
    q, k = (torch.empty(1, heads, 8, 16, device="meta") for heads in (4, 2))
    assert choose(q, k, k, None, True) == "math"
    assert choose(q.bfloat16(), k.bfloat16(), k.bfloat16(), None, True) == "flash"
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        assert choose(q.bfloat16(), k.bfloat16(), k.bfloat16(), None, True) == "math"


@pytest.mark.parametrize("attention", ["flash", "efficient", "math"])
@pytest.mark.parametrize("masked", [False, True])
def test_each_kernel_has_the_shape_and_the_gradients_of_the_real_one(attention, masked):
    def run():
        q = torch.ones(2, 4, 7, 12, requires_grad=True)
        k, v = (torch.ones(2, 2, 7, 12, requires_grad=True) for _ in range(2))
        mask = torch.ones(7, 7, dtype=torch.bool) if masked else None
        y = F.scaled_dot_product_attention(q, k, v, mask, is_causal=not masked, enable_gqa=True)
        y.sum().backward()
        return [t.shape for t in (y, q.grad, k.grad, v.grad)]

    expected = run()
    with on_card(kernel=attention, tracker=StepTracker()):
        assert run() == expected


def test_dropout_keeps_one_byte_a_value():
    with on_card():
        x = torch.empty(5, 7, requires_grad=True)
        assert saved(lambda: F.dropout(x, 0.1)).bytes == 35
        assert saved(lambda: F.dropout(x, 0.1, training=False)).bytes == 0
        x = torch.empty(5, 7, requires_grad=True, device="cpu")
        assert saved(lambda: F.dropout(x, 0.1)).bytes == 4 * 35


def test_a_call_of_attention_inside_another_function_is_the_cards():
    with on_card(kernel="flash"):
        x = torch.ones(2, 6, 32)
        attention = nn.MultiheadAttention(32, 4, batch_first=True)
        found = saved(lambda: attention(x, x, x, need_weights=False)[0])
    assert any("FlashAttention" in row.op for row in found.rows)


@pytest.mark.parametrize("operation", [lambda x: x**2, lambda x: x.exp(), lambda x: x.softmax(-1)])
def test_autocast_follows_the_lists_of_cuda(operation):
    with on_card():
        with torch.autocast("cpu", BF16):
            assert operation(torch.empty(4, 8, dtype=BF16, device="cpu")).dtype == BF16
        with torch.autocast("cuda", BF16):
            x = torch.empty(4, 8, dtype=BF16)
            assert operation(x).dtype == FP32
            assert F.cross_entropy(x, torch.zeros(4, dtype=torch.long)).dtype == FP32
            assert (x @ x.t()).dtype == BF16


def test_a_checkpointed_region_is_computed_again_by_the_same_rules():
    def calls():
        return sum("flash_attention.default" in record.op for record in tracker.records.values())

    tracker = StepTracker()
    with on_card(kernel="flash", tracker=tracker):
        block = build("llama", FP32, 32, 4, 2, 40)
        x, table = torch.empty(2, 6, 32, requires_grad=True), torch.empty(6, 8)
        y = checkpoint(block, x, table, table, use_reentrant=False)
        once = calls()
        y.sum().backward()
        assert calls() == 2 * once > 0
        assert x.grad.shape == x.shape


def test_an_unknown_kernel_is_named():
    with pytest.raises(ValueError, match="unknown attention 'eager'; known: auto, flash"):  # noqa: SIM117
        with on_card(kernel="eager"):
            pass
