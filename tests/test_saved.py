"""What autograd keeps: two methods against each other, and both against formulas made by hand."""

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402
from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from small_models import FAMILIES, GPTBlock, LlamaBlock, Training  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

from memlab.measure import Saved, saved  # noqa: E402
from memlab.measure.saved import walk  # noqa: E402
from memlab.measure.storages import storages  # noqa: E402


def walked_bytes(output, exclude):
    """The second method alone: no hooks, only the finished graph."""
    left_out = storages(exclude).keys()
    kept = storages([tensor for _, _, tensor in walk(output)])
    return sum(s.nbytes() for key, s in kept.items() if key not in left_out)


# Letters as in the literature on activations: s tokens, b batch, h width, a heads,
# kv key/value heads, f hidden width. The block's input x is not counted: it is another's output.
SHAPES = st.fixed_dictionaries(
    {
        "kv": st.sampled_from([1, 2, 4]),
        "group": st.integers(1, 3),
        "d": st.sampled_from([8, 16, 32]),
        "f": st.sampled_from([40, 96, 160]),
        "s": st.integers(3, 40),
        "b": st.integers(1, 3),
    }
)


def llama_kept(shape, dtype):
    d, s, b, kv, f = (shape[key] for key in ("d", "s", "b", "kv", "f"))
    a = kv * shape["group"]
    h = a * d
    block = LlamaBlock(h, a, kv, f).to(dtype)
    x = torch.randn(b, s, h, dtype=dtype, requires_grad=True)
    cos, sin = torch.randn(s, d, dtype=dtype), torch.randn(s, d, dtype=dtype)
    exclude = [block, x, cos, sin]
    kept = saved(lambda: block(x, cos, sin), exclude=exclude)
    assert kept.bytes == walked_bytes(block(x, cos, sin), exclude)
    return kept, (s, b, h, a, kv, f)


@settings(max_examples=12, deadline=None)
@given(SHAPES)
def test_llama_block_in_fp32(shape):
    kept, (s, b, h, a, kv, f) = llama_kept(shape, torch.float32)
    sbh = s * b * h
    assert kept.bytes == 28 * sbh + 8 * sbh * kv // a + 16 * s * b * f + 4 * a * b * s + 8 * s * b


@settings(max_examples=12, deadline=None)
@given(SHAPES)
def test_llama_block_in_bf16_on_cpu(shape):
    kept, (s, b, h, a, kv, f) = llama_kept(shape, torch.bfloat16)
    sbh = s * b * h  # the CPU's RMSNorm saves its input in fp32, so not half of the above
    assert kept.bytes == 24 * sbh + 4 * sbh * kv // a + 8 * s * b * f + 4 * a * b * s + 8 * s * b


@settings(max_examples=12, deadline=None)
@given(SHAPES, st.sampled_from([torch.float32, torch.bfloat16]))
def test_gpt_block_with_dropout(shape, dtype):
    s, b, a = shape["s"], shape["b"], shape["kv"]
    h = a * shape["d"]
    block = GPTBlock(h, a).to(dtype)
    x = torch.randn(b, s, h, dtype=dtype, requires_grad=True)
    mask = torch.ones(s, s, dtype=torch.bool).triu(1)
    exclude = [block, x, mask]
    kept = saved(lambda: block(x, mask), exclude=exclude)
    assert kept.bytes == walked_bytes(block(x, mask), exclude)
    sbh, scores = s * b * h, a * b * s * s
    formula = 68 * sbh + 12 * scores + 16 * s * b
    if dtype is torch.bfloat16:  # statistics of LayerNorm in bf16 too, on the CPU
        formula = 34 * sbh + 6 * scores + 8 * s * b
    assert kept.bytes == formula


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("format", ["fp32", "bf16", "autocast"])
def test_two_methods_agree_on_whole_models(family, format):
    training = Training(family, format)
    exclude = [training.model, training.batch]

    def forward():
        with training.amp():
            return training.model(*training.batch)

    kept = saved(forward, exclude=exclude)
    assert kept.bytes == walked_bytes(forward(), exclude) > 0
    assert all(row.op and row.name for row in kept.rows)
    assert kept.bytes == sum(row.bytes for row in kept.rows if not row.shared)


def test_a_shared_storage_counts_once_and_says_with_whom():
    first, second = nn.Linear(8, 16, bias=False), nn.Linear(8, 16, bias=False)
    x = torch.randn(4, 8)
    kept = saved(lambda: first(x) * second(x), exclude=[first, second])
    assert [(r.op, r.name, r.bytes, r.shared) for r in kept.rows] == [
        ("Mm", "self", 128, ""),
        ("Mm", "self", 128, "Mm.self"),
        ("Mul", "other", 256, ""),
        ("Mul", "self", 256, ""),
    ] and kept.bytes == 128 + 2 * 256
    text = str(kept)
    assert text.splitlines()[0] == "Saved for the backward pass"
    assert "4 × 8" in text and "640" in text.splitlines()[-1] and "Mm.self" in text
    assert "<table" in kept._repr_html_() and repr(kept) == "Saved(640 B in 3 storages)"


def test_a_view_counts_its_whole_storage():
    weight, x = torch.randn(8, requires_grad=True), torch.randn(100, 8)
    assert saved(lambda: weight * x[3], exclude=weight).bytes == 3200


def test_numbers_that_autograd_wraps_are_left_out():
    x = torch.randn(8, requires_grad=True)
    assert saved(lambda: x * 0.5).bytes == 0


def test_the_block_form_counts_even_what_was_freed_and_trace_names_the_rest():
    x = torch.randn(8, requires_grad=True)
    with Saved(exclude=x) as kept:
        x.exp()
        y = x.exp().sin()
    assert kept.bytes == 2 * 32  # one result of exp, freed with its graph; sin keeps the other's
    assert [row.op for row in kept.rows] == ["", ""]
    kept.trace(y)
    assert [(row.op, row.name) for row in kept.rows] == [
        ("Exp", "result"),
        ("Sin", "self"),
        ("", ""),
    ]
    with pytest.raises(RuntimeError, match="make a new one"):
        kept.__enter__()


def test_nothing_is_kept_alive():
    import weakref

    x = torch.randn(8, requires_grad=True)
    with Saved() as kept:
        y = x.exp()
        gone = weakref.ref(y.untyped_storage())
        del y
        assert gone() is None
    assert kept.bytes == 32


def test_checkpointing_keeps_the_input_alone_and_is_not_run_again():
    calls = []

    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 64))

        def forward(self, x):
            calls.append(1)
            return self.net(x)

    block, x = Counting(), torch.randn(8, 64, requires_grad=True)
    kept = saved(lambda: checkpoint(block, x, use_reentrant=False), exclude=block)
    assert kept.bytes == x.nbytes and len(calls) == 1


def test_own_functions_are_named():
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return 2 * x * grad

    x = torch.randn(8, requires_grad=True)
    (row,) = saved(lambda: Square.apply(x)).rows
    assert (row.op, row.name, row.bytes) == ("Square", "tensors[0]", 32)


def test_after_backward_nothing_is_left_to_walk():
    x = torch.randn(8, requires_grad=True)
    y = x.exp().sum()
    y.backward()
    assert [name for _, name, _ in walk(y)] == []


def test_meta_tensors_work_as_well():
    layer = nn.Linear(64, 64, device="meta")
    x = torch.empty(8, 64, device="meta")
    assert saved(lambda: F.gelu(layer(x)), exclude=layer).bytes == 2 * 8 * 64 * 4


def test_wrong_input_fails_by_name():
    with pytest.raises(TypeError, match="fn is a Tensor"):
        saved(torch.ones(1))
    with pytest.raises(TypeError, match="str"):
        saved(lambda: None, exclude="model")
