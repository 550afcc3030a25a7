"""Logits: every copy by name, against every storage of head, loss and backward."""

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402

from memlab import Run  # noqa: E402
from memlab.lab.loss import chunked_cross_entropy  # noqa: E402
from memlab.lab.models.common import next_token_loss  # noqa: E402
from memlab.measure import Tracker  # noqa: E402
from memlab.measure import saved as measure_saved  # noqa: E402
from memlab.model import Model  # noqa: E402
from memlab.step.networks import IMPLEMENTATIONS  # noqa: E402
from memlab.step.simulate import simulate  # noqa: E402
from memlab.terms import linear_cross_entropy as lce  # noqa: E402
from memlab.terms import logits as terms  # noqa: E402
from memlab.terms.logits import MOMENTS, copies, peak, scalars  # noqa: E402

# B, T, V, D: V · D beats no copy of the logits, so that head_backward's gradients stay below them.
SHAPES = [(2, 16, 128, 8), (1, 40, 96, 16), (3, 7, 211, 4)]
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}


def inputs(B, T, V, D, dtype):
    torch.manual_seed(0)
    x = torch.randn(B, T, D, dtype=dtype, requires_grad=True)
    head = torch.randn(V, D, dtype=dtype, requires_grad=True)
    return x, head, torch.randint(V, (B, T))


def traced(given, loss_of, autocast=False):
    """A tracker that saw forward and backward; the inputs are labelled as such."""
    with Tracker() as tracker:
        tracker.label(list(given), "inputs")
        mixed = torch.autocast("cpu", torch.bfloat16, enabled=autocast)
        with tracker.phase("forward"), mixed:
            held, loss = loss_of(*given)
        with tracker.phase("backward"):
            loss.backward()
    del held
    return tracker


def above(tracker, at="peak"):
    """Bytes at a moment without the inputs."""
    return sum(size for record, size in tracker.alive(at) if record.category != "inputs")


# Where each copy is born, as the dispatcher calls it, in the order of MOMENTS.
OPS = {
    "head": "aten.mm.default",
    "upcast": "aten._to_copy.default",
    "log_softmax": "aten._log_softmax.default",
    "nll_backward": "aten.nll_loss_backward.default",
    "log_softmax_backward": "aten._log_softmax_backward_data.default",
    "downcast": "aten._to_copy.default",
    "head_backward": "aten.mm.default",
}


def plain(upcast, kept):
    def loss_of(x, head, y):
        logits = F.linear(x, head)
        loss = F.cross_entropy((logits.float() if upcast else logits).flatten(0, 1), y.flatten())
        return (logits if kept else None), loss

    return loss_of


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("format", DTYPES)
@pytest.mark.parametrize("upcast", [True, False])
@pytest.mark.parametrize("kept", [True, False])
def test_every_copy_is_born_and_dies_as_the_table_says(shape, format, upcast, kept):
    B, T, V, D = shape
    tracker = traced(inputs(*shape, DTYPES[format]), plain(upcast, kept))
    wide = [r for r in tracker.records.values() if r.shape[-1:] == (V,) and r.category != "inputs"]
    table = copies(B * T, vocab=V, format=format, upcast=upcast, kept=kept)
    names = {"float32": "fp32", "bfloat16": "bf16"}
    assert [(names[r.dtype], r.bytes, r.op) for r in wide] == [
        (kind, size, OPS[born]) for _, kind, size, born, _ in table
    ]
    # After the operator of each moment, exactly the copies that the table says are alive.
    births = {r.ident: born for r, (_, _, _, born, _) in zip(wide, table, strict=True)}
    for event in tracker.timeline:
        if event.kind == "alloc" and event.ident in births:
            alive = sum(n for r, n in tracker.alive(event.index) if r.ident in births)
            moment = births[event.ident]
            assert alive == terms.alive(
                moment, rows=B * T, vocab=V, format=format, upcast=upcast, kept=kept
            )


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("format", DTYPES)
@pytest.mark.parametrize("upcast", [True, False])
@pytest.mark.parametrize("kept", [True, False])
def test_the_peak(shape, format, upcast, kept):
    B, T, V, D = shape
    tracker = traced(inputs(*shape, DTYPES[format]), plain(upcast, kept))
    assert tracker.peak_event.op == OPS["log_softmax_backward"]
    derived = peak(B * T, vocab=V, format=format, upcast=upcast, kept=kept)
    assert above(tracker) == derived + scalars(format, upcast=upcast)


@pytest.mark.parametrize(
    ("format", "upcast", "kept", "each"),
    [
        ("fp32", True, False, 12),
        ("fp32", True, True, 16),
        ("fp32", False, False, 12),
        ("bf16", True, False, 12),
        ("bf16", True, True, 14),
        ("bf16", False, False, 6),
        ("bf16", False, True, 8),
    ],
)
def test_bytes_per_logit(format, upcast, kept, each):
    assert peak(10, vocab=7, format=format, upcast=upcast, kept=kept) == each * 70


@pytest.mark.parametrize("format", DTYPES)
@pytest.mark.parametrize("upcast", [True, False])
def test_the_peak_without_backward(format, upcast):
    B, T, V, D = SHAPES[0]
    with torch.no_grad(), Tracker() as tracker:
        x, head, y = inputs(*SHAPES[0], DTYPES[format])
        tracker.label([x, head, y], "inputs")
        held, loss = plain(upcast, True)(x, head, y)
    derived = peak(B * T, vocab=V, format=format, upcast=upcast, backward=False)
    assert above(tracker) == derived + scalars(format, upcast=upcast)


@pytest.mark.parametrize("shape", SHAPES)
def test_autocast_upcasts_by_itself(shape):
    B, T, V, D = shape
    tracker = traced(inputs(*shape, torch.float32), plain(upcast=False, kept=False), autocast=True)
    weights_and_x = 2 * (V * D + B * T * D)  # the bf16 copies that autocast made of the inputs
    derived = peak(B * T, vocab=V, format="bf16", upcast=True) + scalars("bf16", upcast=True)
    assert above(tracker) == derived + weights_and_x


@pytest.mark.parametrize("shape", SHAPES)
def test_labels_of_transformers(shape):
    loss_utils = pytest.importorskip("transformers.loss.loss_utils")
    B, T, V, D = shape

    def loss_of(x, head, y):
        return None, loss_utils.ForCausalLMLoss(F.linear(x, head), y, V)

    tracker = traced(inputs(*shape, torch.bfloat16), loss_of)
    kept = [r for r in tracker.records.values() if r.dtype == "int64" and r.category != "inputs"]
    assert [r.bytes for r in kept if r.category == "activations"] == [terms.labels(B, tokens=T)]
    pad = 8 * B * (T + 1)
    assert sum(r.bytes for r in kept) == terms.labels(B, tokens=T) + (pad if B > 1 else 0)
    assert above(tracker) == peak(B * T, vocab=V, format="bf16") + scalars("bf16")


@pytest.mark.parametrize("shape", SHAPES)
def test_labels_of_memlab(shape):
    B, T, V, D = shape
    given = inputs(*shape, torch.bfloat16)
    tracker = traced(given, lambda x, head, y: (None, next_token_loss(F.linear(x, head), y)))
    made = [r.bytes for r in tracker.records.values() if r.dtype == "int64"][1:]
    assert made == [terms.labels(B, tokens=T, padded=False)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("format", DTYPES)
@pytest.mark.parametrize("upcast", [True, False])
def test_what_the_loss_keeps(shape, format, upcast):
    B, T, V, D = shape
    x, head, y = inputs(*shape, DTYPES[format])
    logits = F.linear(x, head)

    def loss():
        next_BT = F.pad(y[:, 1:], (0, 1), value=-100)
        wide = logits.float() if upcast else logits
        return F.cross_entropy(wide.flatten(0, 1), next_BT.flatten())

    kept = measure_saved(loss, exclude=[x, head, y])
    assert kept.bytes == terms.saved(
        B, tokens=T, vocab=V, format=format, upcast=upcast, padded=False
    )


@pytest.mark.parametrize("recipe", ["fp32", "bf16", "autocast"])
@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("implementation", sorted(IMPLEMENTATIONS))
def test_the_simulated_step_says_the_same(recipe, batch, implementation):
    model = Model(layers=1, d_model=16, d_ff=24, heads=2, vocab=3000)  # the logits are the peak
    step = simulate(model, recipe, Run.cpu(batch=batch, tokens=32, implementation=implementation))
    format = "fp32" if recipe == "fp32" else "bf16"
    padded = implementation == "transformers"
    assert step.peak.op == "log_softmax_backward"
    assert step.peak.contents["logits"] == peak(batch * 32, vocab=3000, format=format)
    assert step.peak.contents["other"] == scalars(format)
    narrow = 0 if recipe != "autocast" else 2 * (batch * 32 + 3000) * 16  # its copies of x and head
    assert step.rows["logits"] - narrow == terms.saved(
        batch, tokens=32, vocab=3000, format=format, padded=padded
    )


CHUNKS = [(48, 128, 8, 1), (48, 128, 8, 4), (48, 96, 24, 5), (50, 64, 16, 7), (6, 3, 8, 2)]


@pytest.mark.parametrize(("R", "V", "D", "chunks"), CHUNKS)
@pytest.mark.parametrize("format", DTYPES)
def test_chunks(R, V, D, chunks, format):
    x, head, y = inputs(1, R, V, D, DTYPES[format])
    x, y = x.detach()[0].requires_grad_(), y[0]
    tracker = traced((x, head, y), lambda x, w, y: (None, chunked_cross_entropy(x, w, y, chunks)))
    assert above(tracker) == terms.chunked_peak(R, vocab=V, d_model=D, chunks=chunks, format=format)


@pytest.mark.parametrize("format", DTYPES)
@pytest.mark.parametrize("chunks", [1, 3, 48])
def test_chunks_compute_the_same_loss_and_gradients(format, chunks):
    x, head, y = inputs(1, 48, 64, 16, DTYPES[format])
    y[0, 5:9] = -100
    whole = F.cross_entropy((x @ head.T).float()[0], y[0])
    loss = chunked_cross_entropy(x[0], head, y[0], chunks)
    torch.testing.assert_close(loss, whole)
    some = {"rtol": 1e-5, "atol": 1e-6} if format == "fp32" else {"rtol": 2e-2, "atol": 2e-2}
    ours = torch.autograd.grad(3 * loss, (x, head))
    theirs = torch.autograd.grad(3 * whole, (x, head))
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, **some)


POLICY = {"fp32": "compact", "bf16": "accurate"}


def options(**more):
    if not hasattr(torch.nn, "LinearCrossEntropyOptions"):
        pytest.skip("torch below 2.13 has no chunked linear_cross_entropy")
    return torch.nn.LinearCrossEntropyOptions(**more)


@pytest.mark.parametrize(("R", "V", "D", "chunk"), [(12, 64, 8, 4), (12, 64, 8, 5), (40, 64, 8, 2)])
@pytest.mark.parametrize("format", DTYPES)
def test_forward_of_torchs_chunks(R, V, D, chunk, format):
    """Inside the operator a dispatch mode sees nothing, so its Python is called directly."""
    options()
    from torch.nn.modules import linear_cross_entropy as module

    x, head, y = inputs(1, R, V, D, DTYPES[format])
    x, head, y = x.detach()[0], head.detach(), y[0]
    with Tracker() as tracker:
        tracker.label([x, head, y], "inputs")
        module._linear_cross_entropy_batch_chunked_accumulator(
            x,
            head,
            y,
            None,
            None,
            "mean",
            -100,
            0.0,
            chunk,
            POLICY[format],
            torch.float32,
            True,
            True,
            False,
        )
    assert above(tracker) == lce.forward_peak(R, vocab=V, d_model=D, chunk=chunk, format=format)


@pytest.mark.parametrize("format", DTYPES)
def test_backward_of_torchs_chunks(format):
    x, head, y = inputs(1, 12, 64, 8, DTYPES[format])
    chosen = options(batch_chunk_size=4, chunking_method=None)
    x, y = x.detach()[0].requires_grad_(), y[0]
    given = (x, head, y)
    tracker = traced(given, lambda x, w, y: (None, F.linear_cross_entropy(x, w, y, options=chosen)))
    assert tracker.peak_event.phase == "backward"
    assert above(tracker) == lce.backward_peak(12, vocab=64, d_model=8, format=format)


@pytest.mark.parametrize("format", DTYPES)
def test_without_options_nothing_is_chunked(format):
    options()
    B, T, V, D = SHAPES[0]
    x, head, y = inputs(*SHAPES[0], DTYPES[format])
    x, y = x.detach().flatten(0, 1).requires_grad_(), y.flatten()
    tracker = traced((x, head, y), lambda x, w, y: (None, F.linear_cross_entropy(x, w, y)))
    assert above(tracker) == lce.reference_peak(B * T, vocab=V, format=format)


@pytest.mark.parametrize("format", DTYPES)
def test_torchs_choice_of_a_chunk(format):
    for R, V, D in [
        (1024, 8192, 64),
        (8192, 128256, 4096),
        (100, 50257, 768),
        (4096, 4096, 4096),
        (1, 64, 8),
    ]:
        made = options()._adjust(
            num_batches=R,
            in_features=D,
            num_classes=V,
            dtype=DTYPES[format],
            device=torch.device("cpu"),
        )
        assert lce.chunk_rows(R, vocab=V, d_model=D, format=format) == made.batch_chunk_size
        assert made.acc_policy == POLICY[format]


def test_wrong_input_fails_by_name():
    with pytest.raises(ValueError, match="rows=-1 is negative"):
        peak(-1, vocab=10)
    with pytest.raises(ValueError, match="unknown moment 'loss'; known: head, upcast"):
        terms.alive("loss", rows=1, vocab=10)
    with pytest.raises(ValueError, match="unknown format 'fp9'; known: "):
        copies(1, vocab=10, format="fp9")
    for chunks in (0, 9):
        with pytest.raises(ValueError, match=f"chunks={chunks}; between 1 and 8"):
            terms.chunked_peak(8, vocab=16, d_model=4, chunks=chunks)
        with pytest.raises(ValueError, match=f"chunks={chunks}; between 1 and 8"):
            chunked_cross_entropy(
                torch.ones(8, 4), torch.ones(16, 4), torch.zeros(8).long(), chunks
            )
    with pytest.raises(ValueError, match="chunk=0; between 1 and 8 rows"):
        lce.forward_peak(8, vocab=16, d_model=4, chunk=0)
    with pytest.raises(ValueError, match="V=3 is below D=4"):
        lce.forward_peak(8, vocab=3, d_model=4, chunk=2)
    with pytest.raises(ValueError, match="format='fp16' has no chunked path here"):
        lce.backward_peak(8, vocab=16, d_model=4, format="fp16")
    assert MOMENTS[-1] == "head_backward"
