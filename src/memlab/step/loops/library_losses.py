"""Losses that libraries make from the head's input, a chunk of the logits at a time.

R rows: B · T tokens · C rows of one chunk · V vocabulary · D model width

torch's F.linear_cross_entropy(..., options=LinearCrossEntropyOptions()) makes the gradients of
input and head in the forward pass, each chunk in buffers that are there once; on a CPU in bf16 it
computes in fp32, with a copy of the head. Its backward pass is given zeros for the results that
nobody used, as large as both gradients. Liger's kernel writes the gradient of the logits over them.

Source      torch, torch/nn/modules/linear_cross_entropy.py; liger-kernel 0.8.5,
            ops/fused_linear_cross_entropy.py, on a GPU of Ampere or later
Leaves out  a bias of the head, weights of classes
"""

from __future__ import annotations

from ...terms.linear_cross_entropy import chunk_rows, liger_rows
from ..core.graph import Grads, Tensor
from ..core.storage_log import Dim
from ..ops import Ops

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any


def library_loss(f: Ops, name: str, x: Tensor, head: Tensor) -> Tensor:
    """The mean loss of every next token, by `memlab.Run`'s name of it: labels shifted by padding.

    Shapes      x [B, T, D], head [V, D]; returns a scalar
    Raises      ValueError where input and head have two formats, as a library's product does
    """
    if x.dtype != head.dtype:
        raise ValueError(
            f"loss={name!r}: the head's input is {x.dtype} here and its weight {head.dtype}, and "
            "the library multiplies two of one format"
        )
    B, T, D = x.shape
    labels = f.new("pad", (B, T), "int64")
    flat = f.view(x, Dim("B·T", B * T), D)
    return (linear_cross_entropy if name == "linear_cross_entropy" else liger)(
        f, flat, head, labels
    )


def linear_cross_entropy(f: Ops, x: Tensor, head: Tensor, labels: Tensor) -> Tensor:
    """torch's, with the options that it chooses by itself: "accurate" on a CPU in bf16, "compact".

    Shapes      x [R, D], head [V, D], labels of R; returns a scalar
    """
    (R, D), V, kind = x.shape, head.shape[0], x.dtype
    cuda, wide = f.backend == "cuda", kind != "fp32"
    accurate = wide and not cuda
    C = chunk_rows(int(R), vocab=int(V), d_model=int(D), format=kind, backend=f.backend)
    logits = f.new("empty", (Dim("C", C), V), "fp32")
    row, out = f.new("empty", (Dim("C", C),), "fp32"), f.new("zeros", (), kind)
    asked = [each.node is not None for each in (x, head)]
    dx = f.new("empty", x.shape, "fp32" if accurate else kind) if asked[0] else None
    dhead = f.new("zeros", head.shape, kind) if asked[1] else None
    held: list[Any] = [f.new("empty", head.shape, "fp32")] if accurate and asked[1] else []
    held += [f.new("to", head.shape, "fp32")] if accurate else []
    held += _labels(f, int(R))
    if wide and (asked[1] or accurate):
        held.append(f.new("empty", (Dim("C", C), D), "fp32"))
    # A variable of the loop lives on until the next chunk has its own.
    total: Tensor | None = None
    weighted: Tensor | None = None
    narrow: Tensor | None = None
    for start in range(0, int(R), C):
        part = Dim("C", min(C, int(R) - start))
        correct = f.new("gather", (part, 1), "fp32")
        dot = f.new("dot", (), "fp32")
        del correct, dot
        total = f.new("sum", (part,), "fp32")
        dot = f.new("dot", (), "fp32")
        del dot
        if cuda and wide and any(asked):
            narrow = f.new("to", (part, V), kind)
        if asked[0]:
            _correction(f, (part, D), "fp32" if accurate else kind, scaled=cuda and wide)
        if asked[1] and not accurate and 4 * V < (2 if wide else 4) * D:  # else over the logits
            weighted = f.new("to" if wide else "mul", (part, D), kind)
    if accurate and dx is not None:
        dx = f.to(dx, kind)
    del logits, row, held, total, weighted, narrow
    kept = [None if each is None else each.storage for each in (dx, dhead)]
    del dx, dhead
    shapes = x.shape, head.shape

    def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
        zeros = [
            f.new("zeros", shape, kind) for shape, one in zip(shapes, asked, strict=True) if one
        ]
        made = [
            None if storage is None else Tensor(shape, kind, storage)
            for shape, storage in zip(shapes, kept, strict=True)
        ]
        kept.clear()
        del zeros
        return made

    f.apply("linear_cross_entropy", [x, head], [out], run)
    return out


def _labels(f: Ops, R: int) -> list[Tensor]:
    """What stays of the labels: a mask, the labels with 0 for those left out, each row's share."""
    mask = f.new("eq", (R,), "bool")
    zero = f.new("scalar_tensor", (), "int64")
    labels = f.new("where", (R,), "int64")
    del zero
    absent = f.new("bitwise_not", (R,), "bool")
    share = f.new("to", (R,), "fp32")
    del absent
    count = f.new("sum", (), "fp32")
    empty, less = f.new("eq", (), "bool"), f.new("neg", (), "fp32")
    nan = f.new("scalar_tensor", (), "fp32")
    divisor = f.new("where", (), "fp32")
    del count, empty, less, nan, divisor
    return [mask, labels, share]


def _correction(f: Ops, shape: tuple[int, ...], kind: str, *, scaled: bool) -> None:
    """The head's row of each label, times the row's share: what the product is taken from."""
    picked = f.new("index_select", shape, kind)
    narrow = f.new("to", shape[:1], kind) if scaled else None
    del picked, narrow


def liger(f: Ops, x: Tensor, head: Tensor, labels: Tensor) -> Tensor:
    """Liger's fused linear cross-entropy: one buffer of C rows, and both gradients from forward on.

    Shapes      x [R, D], head [V, D], labels of R; returns a scalar
    """
    (R, D), V, kind = x.shape, head.shape[0], x.dtype
    dx = f.new("zeros_like", x.shape, kind)
    dhead = f.new("zeros_like", head.shape, kind) if head.node is not None else None
    each = f.new("zeros", (R,), "fp32")
    mask = f.new("ne", (R,), "bool")
    count = f.new("sum", (), "int64")
    del count
    C = liger_rows(int(R), vocab=int(V), d_model=int(D))
    logits = f.new("empty", (Dim("C", C), V), kind)
    for _ in range(0, int(R), C):
        if dhead is not None and kind == "fp32":  # narrower ones are added without a copy
            product = f.new("mm", head.shape, kind)
            del product
    del logits
    loss = f.new("sum", (), "fp32")
    del each, mask
    saved = [("dx", dx), None if dhead is None else ("dhead", dhead)]
    shapes = x.shape, head.shape

    def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
        one = f.new("tensor", (), "fp32")
        del one
        return [Tensor(shapes[i], kind, saved[i]) if needs[i] else None for i in (0, 1)]

    f.apply("liger", [x, head], [loss], run, saved)
    return loss
