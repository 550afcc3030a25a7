"""Logits and loss: every copy of the widest tensor of a step, a score for each word at each token.

R rows: B · T tokens · V vocabulary · D model width · C rows of one chunk · b bytes

A copy is a tuple (name, format, bytes, born, last): it is alive from the moment `born` to the end
of the moment `last`. The moments are operators of head, cross-entropy and their backward pass; the
most copies are alive inside log_softmax_backward.
"""

from __future__ import annotations

from ..formats import format_of, storage
from ..units import whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..formats import Format

MOMENTS = (
    "head",  # logits = x @ head
    "upcast",  # logits.float()
    "log_softmax",
    "nll_backward",  # the gradient of the log-probabilities: -1/R at the label, else 0
    "log_softmax_backward",
    "downcast",  # the gradient back to the format of the logits
    "head_backward",  # x's and the head's gradients from that of the logits
)


def logits(rows: int, *, vocab: int, format: str | Format = "bf16") -> int:
    """Bytes of one copy of the logits.

    Formula     R · V · b
    Shapes      [B, T, V], R = B · T
    Unit        bytes, a whole number
    Leaves out  the other copies: `copies`
    Raises      TypeError or ValueError for a count below zero or an unknown format
    """
    return storage(whole("rows", rows) * whole("vocab", vocab), format)


def copies(
    rows: int, *, vocab: int, format: str | Format = "bf16", upcast: bool = True, kept: bool = False
) -> list[tuple[str, str, int, str, str]]:
    """Every [R, V] tensor of head, cross-entropy and backward: (name, format, bytes, born, last).

    Shapes      upcast: `.float()` before the loss, as transformers does, and what autocast does to
                the loss by itself; without effect on fp32 logits.
                kept: somebody holds the logits through backward (`out = model(...)`); otherwise
                they go when the forward pass returns
    Unit        bytes, whole numbers
    Source      torch 2.13, aten: log_softmax saves its result, nll_loss_backward and
                log_softmax_backward each make a tensor; transformers, loss_utils.py
    Leaves out  the logits shifted instead of the labels (one more copy), label smoothing, a
                softcap, fused and compiled losses
    Raises      as `logits`
    """
    loss = "fp32" if upcast else format_of(format).name
    casts = loss != format_of(format).name
    after = "downcast" if casts else "head_backward"
    made = [("logits", format, "head", "head_backward" if kept else "log_softmax")]
    if casts:
        made.append(("upcast", loss, "upcast", "log_softmax"))
    made.append(("log_probs", loss, "log_softmax", "log_softmax_backward"))
    made.append(("log_probs_gradient", loss, "nll_backward", "log_softmax_backward"))
    made.append(("upcast_gradient" if casts else "gradient", loss, "log_softmax_backward", after))
    if casts:
        made.append(("gradient", format, "downcast", "head_backward"))
    return [
        (name, format_of(kind).name, logits(rows, vocab=vocab, format=kind), born, last)
        for name, kind, born, last in made
    ]


def alive(
    moment: str,
    *,
    rows: int,
    vocab: int,
    format: str | Format = "bf16",
    upcast: bool = True,
    kept: bool = False,
) -> int:
    """Bytes of all copies of the logits at one moment.

    Formula     the sum over copies with born <= moment <= last
    Unit        bytes, a whole number
    Raises      ValueError for an unknown moment; otherwise as `logits`
    """
    if moment not in MOMENTS:
        raise ValueError(f"unknown moment {moment!r}; known: {', '.join(MOMENTS)}")
    at, total = MOMENTS.index(moment), 0
    for _, _, size, born, last in copies(
        rows, vocab=vocab, format=format, upcast=upcast, kept=kept
    ):
        if MOMENTS.index(born) <= at <= MOMENTS.index(last):
            total += size
    return total


def peak(
    rows: int,
    *,
    vocab: int,
    format: str | Format = "bf16",
    upcast: bool = True,
    kept: bool = False,
    backward: bool = True,
) -> int:
    """Bytes of the copies of the logits alive at once, at the worst moment.

    Formula     3 · R · V · b in the loss's format, + R · V · b of the logits where they are kept;
                bytes a logit: fp32 12 (kept 16), bf16 with upcast 12 (14), bf16 without 6 (8).
                Without backward: logits, upcast and log-probabilities (fp32 8, bf16 10 or 4)
    Unit        bytes, a whole number
    Source      measured with memlab.measure.Tracker, torch 2.13 on CPU
    Leaves out  `scalars` and `labels`, which are alive too
    Raises      as `logits`
    """
    moments = MOMENTS if backward else MOMENTS[: MOMENTS.index("log_softmax") + 1]
    return max(
        [
            alive(each, rows=rows, vocab=vocab, format=format, upcast=upcast, kept=kept)
            for each in moments
        ]
    )


def scalars(format: str | Format = "bf16", *, upcast: bool = True) -> int:
    """Bytes of the single numbers beside the copies at the peak.

    Formula     2 · b in the loss's format: the loss and the gradient 1 that backward starts from;
                without backward, the loss and the sum of label weights
    Unit        bytes, a whole number
    Raises      ValueError for an unknown format
    """
    return storage(2, "fp32" if upcast else format)


def labels(batch: int, *, tokens: int, padded: bool = True) -> int:
    """Bytes of the shifted labels that the loss keeps from forward to nll_backward.

    Formula     8 · B · T; 8 · (T + 1) for one padded sequence
    Shapes      int64 [B, T]. padded: transformers pads to [B, T + 1] and cuts the first off; for
                B = 1 the cut is a view and keeps the pad's storage, else it is a copy
    Unit        bytes, a whole number
    Source      transformers, loss_utils.py, ForCausalLMLoss; memlab.lab.models.common
    Leaves out  the batch's own labels; the pad itself during the forward pass of the loss
    Raises      as `logits`
    """
    whole("batch", batch)
    whole("tokens", tokens)
    return 8 * (tokens + 1 if padded and batch == 1 else batch * tokens)


def saved(
    batch: int,
    *,
    tokens: int,
    vocab: int,
    format: str | Format = "bf16",
    upcast: bool = True,
    padded: bool = True,
) -> int:
    """Bytes that cross-entropy keeps from its forward to its backward.

    Formula     R · V · b (log-probabilities) + `labels` + b (the sum of label weights), b: the
                loss's format
    Unit        bytes, a whole number
    Source      torch, tools/autograd/derivatives.yaml: log_softmax and nll_loss
    Leaves out  the head's input, an activation; logits that somebody else holds
    Raises      as `logits`
    """
    rows = whole("batch", batch) * whole("tokens", tokens)
    loss = "fp32" if upcast else format
    return (
        logits(rows, vocab=vocab, format=loss)
        + labels(batch, tokens=tokens, padded=padded)
        + storage(1, loss)
    )


def chunked_peak(
    rows: int, *, vocab: int, d_model: int, chunks: int, format: str | Format = "bf16"
) -> int:
    """Bytes above the inputs at the peak of memlab.lab.loss.chunked_cross_entropy.

    Formula     (R + V) · D · b for the gradients of x and the head, which wait for backward;
                C = ⌈R / chunks⌉: C · V · (4 + b) where b is not 4, else C · V · 4;
                C · 20 (fp32: 28) for numbers a row, 12 for the loss and the count of labels
    Unit        bytes, a whole number
    Source      the code of memlab.lab.loss; Hsu et al. 2024, arXiv:2410.10989
    Leaves out  the inputs; scratch memory inside a matrix product
    Raises      ValueError for fewer than one chunk or more chunks than rows; else as `logits`
    """
    if not 1 <= whole("chunks", chunks) <= whole("rows", rows):
        raise ValueError(f"chunks={chunks}; between 1 and {rows} (the rows) is needed")
    chunk = -(-rows // chunks)
    gradients = storage((rows + whole("vocab", vocab)) * whole("d_model", d_model), format)
    wide = logits(chunk, vocab=vocab, format="fp32")
    if format_of(format).name == "fp32":
        return gradients + wide + 28 * chunk + 12
    # The cast of the gradient, unless V is so small that the numbers a row weigh more.
    return (
        gradients
        + wide
        + max(logits(chunk, vocab=vocab, format=format) + 20 * chunk, 28 * chunk)
        + 12
    )
