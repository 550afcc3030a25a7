"""The loss of a loop of one's own, and that from the head's input, some logits at a time."""

from __future__ import annotations

from ..core.graph import Grads, Tensor
from ..core.storage_log import Dim
from ..ops import Ops


def own_cross_entropy(f: Ops, logits: Tensor, labels: Tensor) -> Tensor:
    """F.cross_entropy(logits.flatten(0, 1), labels.flatten()): in the logits' own format.

    Autocast has cross_entropy in its list of fp32, and casts the logits.
    """
    B, T, V = logits.shape
    values = f.to(logits, "fp32") if f.autocast else logits
    return f.cross_entropy(f.view(values, Dim("B·T", B * T), V), f.view(labels, B, T))


def chunked_next_token_loss(f: Ops, x: Tensor, head: Tensor, chunks: int) -> Tensor:
    """memlab.lab.models.common: labels shifted by padding, rows cut into chunks."""
    B, T, D = x.shape
    labels = f.new("pad", (B, T), "int64")
    return chunked_cross_entropy(f, f.view(x, Dim("B·T", B * T), D), head, labels, chunks)


def chunked_cross_entropy(f: Ops, x: Tensor, head: Tensor, labels: Tensor, chunks: int) -> Tensor:
    """memlab.lab.loss line by line: gradients are made in the forward pass, beside the loss.

    Shapes      x [R, D], head [V, D], labels of R; returns a scalar
    """
    R = x.shape[0]
    dx, dhead = f.new("empty_like", x.shape, x.dtype), f.new("zeros_like", head.shape, head.dtype)
    loss = f.new("zeros", (), "fp32")
    asked = f.new("ne", (R,), "bool")
    count = f.new("sum", (), "int64")
    del asked
    rows = -(-R // chunks)
    wanted: Tensor | None = None
    for start in range(0, R, rows):
        wanted = None  # its name goes to the next chunk's labels, a view
        part = Dim("C", min(rows, R - start))
        one = (part, 1)
        logits = _logits(f, x, head, part)
        largest = f.new("amax", one, "fp32")
        del largest
        is_asked = f.new("ne", one, "bool")
        share = f.new("div", one, "fp32")
        del is_asked
        wanted = f.new("clamp", one, "int64")
        correct = f.new("gather", one, "fp32")
        total = f.new("sum", one, "fp32")
        log = f.new("log", one, "fp32")
        difference = f.new("sub", one, "fp32")
        del log
        product = f.new("mul", one, "fp32")
        del difference
        added = f.new("sum", (), "fp32")
        del product, added
        factor = f.new("div", one, "fp32")
        del factor
        negative = f.new("neg", one, "fp32")
        del negative
        logits = f.to(logits, head.dtype)
        del logits
    del count, share, wanted, correct, total
    shapes, types = (x.shape, head.shape), (x.dtype, head.dtype)

    def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
        return [Tensor(shapes[i], types[i], saved[i]) if needs[i] else None for i in (0, 1)]

    f.apply("chunked_cross_entropy", [x, head], [loss], run, [("dx", dx), ("dhead", dhead)])
    return loss


def _logits(f: Ops, x: Tensor, head: Tensor, rows: int) -> Tensor:
    """(x_CD @ head.T).float(); autocast casts both factors again for each chunk."""
    dtype = f.autocast or x.dtype
    casts = [f.new("to", (n, x.shape[1]), dtype) for n in (head.shape[0], rows) if f.autocast]
    narrow = f.new("mm", (rows, head.shape[0]), dtype)
    del casts
    return f.to(narrow, "fp32")
