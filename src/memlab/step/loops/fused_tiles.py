"""TRL's log-probabilities in tiles of the logits: forward, and backward with both products.

N tokens · n at most 4,096 of them · c at most 32,768 of the V words

On CUDA a Triton kernel works on each tile in place, so that a step holds one tile and the fp32
gradients of head and hidden states. Without Triton, as on a CPU, the same is spelled out in torch's
operators, whose temporaries are several times the tile.

Source      trl, kernels/chunked_logprob.py
"""

from __future__ import annotations

from ..core.graph import Grads, Tensor
from ..core.storage_log import Dim, Storage
from ..ops import Ops

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Sequence

TOKENS, WORDS = 4096, 32768  # TOKEN_CHUNK_SIZE, _CHUNKED_LOGPROB_CHUNK_SIZE


def log_probs(
    f: Ops, rows: Tensor, head: Tensor, targets: Tensor, wanted: Sequence[str]
) -> list[Tensor]:
    """ChunkedLogProbFunction: the log-probability of each target, then what is wanted beside it.

    Shapes      rows [N, D], head [V, D], targets of N; returns one number a row, in this order:
                log-probabilities, entropies, mean logits, whether the target is the best
    """
    N, D = rows.shape
    V = head.shape[0]
    dtype = f.autocast or rows.dtype
    one = (N,)
    stats = [f.new("zeros", one, "fp32") for _ in range(7)]
    tile = f.new("empty", (Dim("n", min(N, TOKENS)), Dim("c", WORDS)), dtype)
    for n in parts(N, TOKENS, "n"):
        part = _cast(f, (n, D), rows.dtype, dtype)
        for c in parts(V, WORDS, "c"):
            words = _cast(f, (c, D), head.dtype, dtype)
            del words
            if f.backend != "cuda":
                _forward_tile(f, n, c, dtype, wanted)
        del part
    log = f.new("log", one, "fp32")
    log_z = f.new("add", one, "fp32")
    del log
    made = [f.new("sub", one, "fp32")]
    kept = log_z
    if "entropy" in wanted:
        ratio = f.new("div", one, "fp32")
        kept = f.new("sub", one, "fp32")
        made.append(kept)
        del ratio
    if "mean_logits" in wanted:
        made.append(f.new("div", one, "fp32"))
    if "is_top1" in wanted:
        first = f.new("ge", one, "bool")
        second = f.new("gt", one, "bool")
        made.append(f.new("and", one, "bool"))
        del first, second
    del stats, tile
    types = (rows.dtype, head.dtype)

    def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
        return _gradients(f, (N, D, V), types, dtype, needs)

    saved = [("hidden", rows), ("weight", head), ("targets", targets)]
    saved += [("log_z", log_z), ("entropy", kept)]
    f.apply("chunked_logprob", [rows, head], made[: 1 + ("entropy" in wanted)], run, saved)
    return made


def _gradients(
    f: Ops, sizes: tuple[int, int, int], types: tuple[str, str], dtype: str, needs: list[bool]
) -> Grads:
    """Each tile again, its gradient in its place, and both products summed in fp32."""
    N, D, V = sizes
    sums = [
        f.new("zeros", shape, "fp32") if need else None
        for shape, need in (((N, D), needs[0]), ((V, D), needs[1]))
    ]
    tile = f.new("empty", (Dim("n", min(N, TOKENS)), Dim("c", WORDS)), dtype)
    words: Storage | Tensor | None = None
    part: Storage | Tensor | None = None
    for n in parts(N, TOKENS, "n"):
        part = _cast(f, (n, D), types[0], dtype)
        for c in parts(V, WORDS, "c"):
            words = _cast(f, (c, D), types[1], dtype)
            if f.backend != "cuda":
                _backward_tile(f, n, c, dtype)
                if dtype != "fp32":
                    for shape, need in (((c, D), needs[0]), ((n, D), needs[1])):
                        wide = [f.new("to", (n, c), "fp32"), f.new("to", shape, "fp32")]
                        if not need:
                            wide.clear()
                        del wide
    made = []
    for total, kind in zip(sums, types, strict=True):
        narrow = total is not None and kind != "fp32"
        made.append(f.new("to", total.shape, kind) if narrow and total is not None else total)
    del words, part, tile, sums
    return made


def parts(size: int, most: int, letter: str) -> list[Dim]:
    """The sizes of the tiles along one side."""
    return [Dim(letter, min(most, size - start)) for start in range(0, size, most)]


def _cast(f: Ops, shape: tuple[int, ...], kept: str, dtype: str) -> Tensor | None:
    """A slice of what is kept: a view, or a copy in the format that is computed in."""
    return None if kept == dtype else f.new("to", shape, dtype)


def _forward_tile(f: Ops, n: Dim, c: Dim, dtype: str, wanted: Sequence[str]) -> None:
    """The torch operators that stand for the forward kernel: one tile into seven numbers a row."""
    tile, row = (n, c), (n,)
    wide = None if dtype == "fp32" else f.new("to", tile, "fp32")
    scaled = f.new("mul", tile, "fp32")
    del wide
    z = f.new("mul", tile, "fp32")
    del scaled
    local = f.new("sub", row, "int64")
    before: Tensor | None = None
    if "mean_logits" in wanted:
        total = f.new("sum", row, "fp32")
        del total
    if "is_top1" in wanted:
        words = f.new("arange", (c,), "int64")
        before = f.new("lt", tile, "bool")
        del words
        after = f.new("bitwise_not", tile, "bool")
        filled = f.new("masked_fill", tile, "fp32")
        del after
        largest = f.new("amax", row, "fp32")
        del filled
        larger = f.new("maximum", row, "fp32")
        del largest, larger
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
    if "entropy" in wanted:
        product = f.new("mul", tile, "fp32")
        total = f.new("sum", row, "fp32")
        del product, total
    at_least, below = f.new("ge", row, "bool"), f.new("lt", row, "bool")
    inside = f.new("and", row, "bool")
    del at_least, below
    clamped = f.new("clamp", row, "int64")
    target = f.new("gather", row, "fp32")
    del clamped
    chosen = f.new("where", row, "fp32")
    del z, local, before, new, rescale, e, inside, target, chosen


def _backward_tile(f: Ops, n: Dim, c: Dim, dtype: str) -> None:
    """The torch operators that stand for the backward kernel: a tile becomes its gradient."""
    tile = (n, c)
    wide = None if dtype == "fp32" else f.new("to", tile, "fp32")
    y = f.new("mul", tile, "fp32")
    del wide
    z = f.new("mul", tile, "fp32")
    log_p = f.new("sub", tile, "fp32")
    p = f.new("exp", tile, "fp32")
    grad = f.new("zeros_like", tile, "fp32")
    words = f.new("arange", (c,), "int64")
    is_target = f.new("eq", tile, "bool")
    del words
    flags = f.new("to", tile, "fp32")
    difference = f.new("sub", tile, "fp32")
    del flags
    weighted = f.new("mul", tile, "fp32")
    del difference, weighted
    grad = f.new("mul", tile, "fp32")
    scaled = f.new("mul", tile, "fp32")
    del scaled, y, z, log_p, p, grad, is_target
