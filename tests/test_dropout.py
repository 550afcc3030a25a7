"""The masks of dropout, by hand, against torch, and in the simulated step."""

import pytest

torch = pytest.importorskip("torch")
from torch.nn import functional as F  # noqa: E402

from memlab import Model, Run  # noqa: E402
from memlab.measure import Saved  # noqa: E402
from memlab.step import simulate  # noqa: E402
from memlab.terms.dropout import attention_mask, mask, mask_format  # noqa: E402

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}


def test_by_hand():
    """GPT-2 small, 8 sequences of 1,024 tokens: 12 MiB and 24 MiB a mask of the stream."""
    values = 8 * 1024 * 768
    assert mask(values, format="bf16", backend="cuda") == 6291456
    assert mask(values, format="bf16") == 2 * 6291456
    scores = dict(batch=8, tokens=1024, heads=12)
    assert attention_mask(**scores, kernel="flash", format="bf16", backend="cuda") == 0
    assert attention_mask(**scores, kernel="eager", format="bf16", backend="cuda") == 96 * 2**20
    assert attention_mask(**scores, kernel="math", format="bf16") == 4 * 96 * 2**20


@pytest.mark.parametrize("format", DTYPES)
def test_torch_keeps_a_mask_like_the_values_on_the_cpu(format):
    x = torch.randn(3, 5, requires_grad=True, dtype=DTYPES[format])
    with Saved() as kept:
        F.dropout(x, 0.5)
    assert kept.bytes == mask(15, format=format)


@pytest.mark.parametrize("format", DTYPES)
def test_the_fused_kernel_keeps_a_byte_a_value(format):
    x = torch.empty(3, 5, device="meta", dtype=DTYPES[format])
    _, dropped = torch.native_dropout(x, 0.5, True)
    assert dropped.dtype == torch.bool and mask_format(format, backend="cuda") == "bool"
    assert dropped.nbytes == mask(15, format=format, backend="cuda")


def test_written_out_attention_keeps_mask_and_dropped_scores():
    """Without dropout the softmax's result is kept once, for its own backward and the product's."""
    q, k, v = (torch.randn(2, 4, 16, 8, requires_grad=True) for _ in range(3))

    def kept_with(p):
        with Saved(exclude=[q, k, v]) as kept:
            F.dropout((q @ k.mT).softmax(-1), p, training=p > 0) @ v
        return kept.bytes

    scores = 2 * 4 * 16 * 16 * 4
    more = attention_mask(2, tokens=16, heads=4, kernel="eager") + scores
    assert kept_with(0.5) - kept_with(0.0) == more


@pytest.mark.parametrize("backend", ["cpu", "cuda"])
@pytest.mark.parametrize("format", DTYPES)
def test_a_simulated_layer_keeps_these_masks(backend, format):
    """One behind attention, one behind the feed-forward part, and attention's own."""
    model = Model(layers=3, d_model=64, d_ff=128, heads=4, vocab=101, positions=32, family="gpt2")
    how = Run(batch=2, tokens=16, implementation="memlab", backend=backend, dropout=0.1)
    rows = simulate(model, format, how).saved.rows
    op, kept_as = ("native_dropout", "bool") if backend == "cuda" else ("bernoulli", format)
    masks = [row for row in rows if row.name == op]
    stream = mask(2 * 16 * 64, format=format, backend=backend)
    kernel = "math" if backend == "cpu" else "flash" if format == "bf16" else "efficient"
    inside = attention_mask(2, tokens=16, heads=4, kernel=kernel, format=format, backend=backend)
    assert sum(row.bytes for row in masks) == 2 * stream + inside
    assert [row.dtype for row in masks if row.shape == "B · T · D"] == 2 * [kept_as]


def test_wrong_values():
    with pytest.raises(ValueError, match="unknown backend 'tpu'; known: cpu, cuda"):
        mask(10, backend="tpu")
    with pytest.raises(ValueError, match="unknown kernel 'cudnn'; known: eager, efficient, flash"):
        attention_mask(1, tokens=2, heads=1, kernel="cudnn")
