"""TRL's fused output head: log-probabilities in tiles, never all logits at once.

N = B · (T - 1) predicted tokens · n at most 4,096 of them · c at most 32,768 of the V words

On CUDA a Triton kernel works on each tile in place, so that a step holds one tile and the fp32
gradients of head and hidden states. Without Triton, as on a CPU, the same is spelled out in torch's
operators, whose temporaries are several times the tile. Long, because both are told here.

Source      trl 1.16, trainer/utils.py: add_fused_lm_head; kernels/chunked_logprob.py;
            trainer/sft_trainer.py: compute_loss
Leaves out  a bias of the head; what one indexing kernel takes for a moment; logits with a soft cap
            on a CPU, which `memlab.step.described` refuses
"""

from __future__ import annotations

from .graph import Grads, Tensor
from .ops import Ops
from .setting import Setting
from .storage_log import Dim, Storage

TOKENS, WORDS = 4096, 32768  # TOKEN_CHUNK_SIZE, _CHUNKED_LOGPROB_CHUNK_SIZE


def fused_head_loss(f: Ops, s: Setting, x: Tensor, head: Tensor) -> Tensor:
    """The loss of SFTTrainer: the negative log-probability of each next token, by their number."""
    short = Dim("(T-1)", s.T - 1)
    told = (s.B, short)
    width = x.shape[2]
    hidden = f.part_of(x, s.B, short, width)
    mask = f.new("ne", told, "bool")
    if f.backend == "cuda":
        rows, targets = _compact(f, s, hidden, mask)
    else:
        flat = (Dim("N", s.B * short), width)
        rows = f.view(hidden if s.B == 1 else f.copy(hidden), *flat)
        targets = f.new("clamp", told, "int64")
    chosen, entropy, best = _log_probs(f, s, rows, head, targets)
    if f.backend == "cuda":
        chosen, entropy = _scattered(f, chosen, mask, told), _scattered(f, entropy, mask, told)
        best = f.new("masked_scatter", told, "bool")
    else:
        chosen, entropy = _filled(f, chosen, told), _filled(f, entropy, told)
        best = f.new("masked_fill", told, "bool")
    own = _forwards_own_loss(f, chosen)
    negative = f.neg(chosen)
    count = f.new("sum", (), "int64")
    loss = _divided(f, f.total_of(negative), count)
    del hidden, rows, targets, mask, chosen, entropy, best, own, negative, count
    return loss


def _compact(f: Ops, s: Setting, hidden: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """hidden[mask] and labels[mask]: every position here, as no label is left out."""
    N = Dim("N", s.B * (s.T - 1))
    rows = f.new("index", (N, hidden.shape[2]), hidden.dtype)
    shape = hidden.shape

    def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
        return [f.new("index_backward", shape, grads[0].dtype)]

    f.apply("index", [hidden], [rows], run, [("indices", mask)])
    return rows, f.new("index", (N,), "int64")


def _filled(f: Ops, x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """x.view(mask.shape).masked_fill(~mask, 0)."""
    absent = f.new("bitwise_not", shape, "bool")
    seen = f.view(x, *shape)
    out = f.new("masked_fill", shape, x.dtype)

    def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
        return [f.new("masked_fill", shape, grads[0].dtype)]

    f.apply("masked_fill", [seen], [out], run, [("mask", absent)])
    return out


def _scattered(f: Ops, x: Tensor, mask: Tensor, shape: tuple[int, ...]) -> Tensor:
    """x.new_zeros(mask.shape).masked_scatter(mask, x)."""
    zeros = f.new("new_zeros", shape, x.dtype)
    out = f.new("masked_scatter", shape, x.dtype)
    del zeros
    size = x.shape

    def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
        return [f.new("masked_scatter_backward", size, grads[0].dtype)]

    f.apply("masked_scatter", [x], [out], run, [("mask", mask)])
    return out


def _forwards_own_loss(f: Ops, chosen: Tensor) -> Tensor:
    """The loss that the model's forward gives back beside its log-probabilities; nobody uses it."""
    total = f.total_of(chosen)
    negative = f.neg(total)
    count = f.new("sum", (), "int64")
    clamped = f.new("clamp", (), "int64")
    del count
    return _divided(f, negative, clamped)


def _divided(f: Ops, x: Tensor, count: Tensor) -> Tensor:
    """A number over how many there are."""
    out = f.new("div", (), x.dtype)

    def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
        return [f.new("div", (), grads[0].dtype)]

    f.apply("div", [x], [out], run, [("other", count)])
    return out


def _log_probs(
    f: Ops, s: Setting, rows: Tensor, head: Tensor, targets: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """ChunkedLogProbFunction: log-probabilities, entropies, whether the target is the best."""
    N, D = rows.shape
    V = head.shape[0]
    dtype = f.autocast or rows.dtype
    one = (N,)
    stats = [f.new("zeros", one, "fp32") for _ in range(7)]
    tile = f.new("empty", (Dim("n", min(N, TOKENS)), Dim("c", WORDS)), dtype)
    for n in _parts(N, TOKENS, "n"):
        part = _cast(f, (n, D), rows.dtype, dtype)
        for c in _parts(V, WORDS, "c"):
            words = _cast(f, (c, D), head.dtype, dtype)
            del words
            if f.backend != "cuda":
                _forward_tile(f, n, c, dtype)
        del part
    log = f.new("log", one, "fp32")
    log_z = f.new("add", one, "fp32")
    del log
    chosen = f.new("sub", one, "fp32")
    ratio = f.new("div", one, "fp32")
    entropy = f.new("sub", one, "fp32")
    del ratio
    first = f.new("ge", one, "bool")
    second = f.new("gt", one, "bool")
    best = f.new("and", one, "bool")
    del first, second, stats, tile
    types = (rows.dtype, head.dtype)

    def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
        return _gradients(f, (N, D, V), types, dtype, needs)

    saved = [("hidden", rows), ("weight", head), ("targets", targets)]
    saved += [("log_z", log_z), ("entropy", entropy)]
    f.apply("chunked_logprob", [rows, head], [chosen, entropy], run, saved)
    return chosen, entropy, best


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
    for n in _parts(N, TOKENS, "n"):
        part = _cast(f, (n, D), types[0], dtype)
        for c in _parts(V, WORDS, "c"):
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


def _parts(size: int, most: int, letter: str) -> list[Dim]:
    """The sizes of the tiles along one side."""
    return [Dim(letter, min(most, size - start)) for start in range(0, size, most)]


def _cast(f: Ops, shape: tuple[int, ...], kept: str, dtype: str) -> Tensor | None:
    """A slice of what is kept: a view, or a copy in the format that is computed in."""
    return None if kept == dtype else f.new("to", shape, dtype)


def _forward_tile(f: Ops, n: Dim, c: Dim, dtype: str) -> None:
    """The torch operators that stand for the forward kernel: one tile into seven numbers a row."""
    tile, row = (n, c), (n,)
    wide = None if dtype == "fp32" else f.new("to", tile, "fp32")
    scaled = f.new("mul", tile, "fp32")
    del wide
    z = f.new("mul", tile, "fp32")
    del scaled
    local = f.new("sub", row, "int64")
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
