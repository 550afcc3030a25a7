"""TRL's divergence of two models in tiles of both logits: forward, and backward in fp32.

N tokens · n at most 4,096 of them · c at most 32,768 of the V words

Both heads are multiplied tile by tile, in fp32 whatever the models are in, so that a step holds two
tiles of 4 n c bytes. A tile is made for all 32,768 words even where there are fewer. On CUDA a
Triton kernel works in place; without Triton, as on a CPU, the same is spelled out in torch's
operators, whose temporaries are several times a tile.

Source      trl, kernels/chunked_divergence.py, with beta=1.0, its default: the reverse KL
Leaves out  a soft cap of the logits on a CPU, and a bias of the head
"""

from __future__ import annotations

from ..core.graph import Grads, Tensor
from ..core.storage_log import Dim
from ..ops import Ops
from .fused_tiles import TOKENS, WORDS, parts


def divergence(
    f: Ops, student: tuple[Tensor, Tensor], teacher: tuple[Tensor, Tensor]
) -> tuple[Tensor, Tensor]:
    """ChunkedDivergenceFunction: the divergence at each token, and the student's entropy.

    Shapes      of each model hidden states [N, D] and head [V, D]; returns two of N in fp32
    """
    (rows, head), (others, their_head) = student, teacher
    N, V = rows.shape[0], head.shape[0]
    one = (N,)
    stats = []
    for _ in range(2):  # the largest logits, from minus infinity on
        zeros = f.new("zeros", one, "fp32")
        stats.append(f.new("sub", one, "fp32"))
        del zeros
    stats += [f.new("zeros", one, "fp32") for _ in range(7)]
    tiles = _tiles(f, N)
    for n in parts(N, TOKENS, "n"):
        for c in parts(V, WORDS, "c"):
            if f.backend != "cuda":
                for hidden, weight in (student, teacher):
                    _project(f, n, c, hidden, weight)
                _forward_tile(f, n, c)
        sums = [_log_sum(f, (n,)) for _ in range(2)]
    log_z = [_log_sum(f, one) for _ in range(2)]
    del sums
    ratio = f.new("div", one, "fp32")
    entropy = f.new("sub", one, "fp32")
    del ratio
    ratio = f.new("div", one, "fp32")
    difference = f.new("sub", one, "fp32")
    del ratio
    each = f.new("add", one, "fp32")
    del difference, stats, tiles
    sizes = (rows.shape, head.shape, others.shape, their_head.shape)
    types = (rows.dtype, head.dtype, others.dtype, their_head.dtype)

    def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
        # The gradient of a sum is one number, spread; where tokens are masked it is a tensor.
        spread = f.new("clone", one, "fp32") if f.backend == "cuda" else None
        found = _gradients(f, sizes, types, needs)
        del spread
        return found

    saved = [("student", rows), ("weight", head), ("teacher", others), ("weight", their_head)]
    saved += [("log_z", log_z[0]), ("log_z", log_z[1]), ("divergence", each)]
    f.apply("chunked_divergence", [rows, head], [each], run, saved)
    return each, entropy


def _tiles(f: Ops, rows: int) -> list[Tensor]:
    shape = (Dim("n", min(rows, TOKENS)), Dim("c", WORDS))
    return [f.new("empty", shape, "fp32") for _ in range(2)]


def _log_sum(f: Ops, shape: tuple[int, ...]) -> Tensor:
    log = f.new("log", shape, "fp32")
    made = f.new("add", shape, "fp32")
    del log
    return made


def _project(f: Ops, n: Dim, c: Dim, hidden: Tensor, weight: Tensor) -> None:
    """A tile's product without CUDA's mixed one: both factors are cast to fp32 first."""
    cast = f.new("to", (c, weight.shape[1]), hidden.dtype) if weight.dtype != hidden.dtype else None
    if hidden.dtype != "fp32":
        wide = [f.new("to", (size, hidden.shape[1]), "fp32") for size in (n, c)]
        del wide
    del cast


def _forward_tile(f: Ops, n: Dim, c: Dim) -> None:
    """The torch operators that stand for the forward kernel: seven numbers a row of both."""
    tile, row = (n, c), (n,)
    zs, zt = _scaled(f, tile), _scaled(f, tile)
    gap = f.new("sub", tile, "fp32")
    held = []
    for products in (2, 1):  # the student's entropy and gap, the teacher's gap
        top = f.new("amax", row, "fp32")
        new = f.new("maximum", row, "fp32")
        del top
        difference = f.new("sub", row, "fp32")
        rescale = f.new("exp", row, "fp32")
        del difference
        less = f.new("sub", tile, "fp32")
        e = f.new("exp", tile, "fp32")
        del less
        total = f.new("sum", row, "fp32")
        del total
        for _ in range(products):
            product = f.new("mul", tile, "fp32")
            total = f.new("sum", row, "fp32")
            del product, total
        held += [new, rescale, e]
        del new, rescale, e
    del held, gap, zs, zt


def _scaled(f: Ops, tile: tuple[int, ...]) -> Tensor:
    """z * scale * (1 / temperature)."""
    scaled = f.new("mul", tile, "fp32")
    made = f.new("mul", tile, "fp32")
    del scaled
    return made


def _gradients(
    f: Ops, sizes: tuple[tuple[int, ...], ...], types: tuple[str, ...], needs: list[bool]
) -> Grads:
    """Both tiles again, the student's gradient in its tile, and both products summed in fp32."""
    (N, D), (V, _), theirs, _ = sizes
    sums = [
        f.new("zeros", shape, "fp32") if need else None
        for shape, need in (((N, D), needs[0]), ((V, D), needs[1]))
    ]
    tiles = _tiles(f, N)
    models = [
        (Tensor((N, D), types[0], tiles[0].storage), Tensor((V, D), types[1], tiles[0].storage)),
        (Tensor(theirs, types[2], tiles[0].storage), Tensor(sizes[3], types[3], tiles[0].storage)),
    ]
    narrow: Tensor | None = None
    for n in parts(N, TOKENS, "n"):
        for c in parts(V, WORDS, "c"):
            if f.backend != "cuda":
                for hidden, weight in models:
                    _project(f, n, c, hidden, weight)
                _backward_tile(f, n, c)
            if types[0] == "fp32":
                continue
            narrow = f.new("to", (n, c), types[0])
            if f.backend != "cuda":
                for shape, need in (((c, D), needs[0]), ((n, D), needs[1])):
                    wide = [f.new("to", (n, c), "fp32"), f.new("to", shape, "fp32")] if need else []
                    del wide
    made = []
    for total, kind in zip(sums, types, strict=False):
        cast = total is not None and kind != "fp32"
        made.append(f.new("to", total.shape, kind) if cast and total is not None else total)
    del narrow, models, tiles, sums
    return made


def _backward_tile(f: Ops, n: Dim, c: Dim) -> None:
    """The torch operators that stand for the backward kernel: a tile becomes its gradient."""
    tile = (n, c)
    y = f.new("mul", tile, "fp32")
    zs = f.new("mul", tile, "fp32")
    zt = _scaled(f, tile)
    log_s, log_t = f.new("sub", tile, "fp32"), f.new("sub", tile, "fp32")
    p = f.new("exp", tile, "fp32")
    apart = f.new("sub", tile, "fp32")
    less = f.new("sub", tile, "fp32")
    del apart
    grad = f.new("mul", tile, "fp32")
    del less
    weighted = f.new("mul", tile, "fp32")
    scaled = f.new("mul", tile, "fp32")
    del weighted
    grad = scaled
    del scaled
    whole = f.new("mul", tile, "fp32")
    del whole, y, zs, zt, log_s, log_t, p, grad
