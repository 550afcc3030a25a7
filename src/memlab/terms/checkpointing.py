"""Activation checkpointing: what is kept, how high backward climbs, and what is computed again.

L layers · B batch · T tokens · D model width · F feed-forward width · N query heads · K key/value
heads · H head width · b bytes per value · x bytes of a block's input, B·T·D·b

A model is cut into regions, a list of (layers, again): again says whether a region is checkpointed,
so that it keeps a little and computes the rest once more in backward. Nothing checkpointed is
[(L, False)], every block by itself [(1, True)] * L, segments of three [(3, True)] * (L // 3).
"""

from __future__ import annotations

from ..units import whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

KEEP = ("input", "attention", "matmuls", "matmuls+attention")


def segments(layers: int, *, size: int) -> list[tuple[int, bool]]:
    """Regions of `size` layers, all checkpointed; the last one has what is left.

    Formula     floor(L / s) times (s, True), then (L mod s, True) unless that is 0
    Unit        a list of pairs (layers and again)
    Raises      ValueError for a size of 0
    """
    if whole("size", size) == 0:
        raise ValueError("size=0; a segment has at least 1 layer")
    full, rest = divmod(whole("layers", layers), size)
    return [(size, True)] * full + ([(rest, True)] if rest else [])


def kept(
    batch: int,
    *,
    tokens: int,
    d_model: int,
    d_ff: int,
    heads: int,
    kv_heads: int,
    head_dim: int,
    keep: str = "input",
    value_bytes: int = 2,
) -> int:
    """Bytes that one checkpointed Llama block keeps, its input included.

    Formula     input       B·T·D·b
                attention   + B·T·N·H·b + 4·B·T·N
                matmuls     + B·T·(2·D + (N + 2·K)·H + 2·F)·b
    Shapes      input [B, T, D]; of attention the output [B, N, T, H] and an fp32 number a row; of
                the matmuls q, out, down, k, v, gate, up
    Unit        bytes, a whole number
    Source      torch.utils.checkpoint, create_selective_checkpoint_contexts: the results of the
                operators of its list
    Leaves out  autocast; the state of the random numbers, 5,056 bytes on a CPU
    Raises      ValueError for a count below zero or an unknown `keep`
    """
    _known(keep)
    rows = whole("batch", batch) * whole("tokens", tokens)
    width, H = whole("d_model", d_model), whole("head_dim", head_dim)
    queries = whole("heads", heads) * H
    values, numbers = width, 0
    if "attention" in keep:
        values += queries
        numbers = 4 * heads
    if "matmuls" in keep:
        values += (
            2 * width + queries + 2 * whole("kv_heads", kv_heads) * H + 2 * whole("d_ff", d_ff)
        )
    return rows * (values * whole("value_bytes", value_bytes) + numbers)


def held(regions: Sequence[tuple[int, bool]], *, block: int, kept: int) -> int:
    """Bytes that the layers hold after the forward pass.

    Formula     kept for each region that is checkpointed, layers · block for each that is not
    block       bytes that one layer keeps where nothing is checkpointed
    kept        bytes that a checkpointed region keeps: its input, as a rule
    Unit        bytes, a whole number
    Raises      ValueError for a count below zero
    """
    whole("block", block)
    whole("kept", kept)
    return sum([kept if again else whole("layers", n) * block for n, again in regions])


def backward_peak(
    regions: Sequence[tuple[int, bool]],
    *,
    block: int,
    kept: int,
    gradient: int,
    room: int,
    extra: int = 0,
) -> int:
    """Bytes of activations, gradients and room at the worst moment of backward through the layers.

    Formula     for layer i of region r: held of all regions below r
                + (of r, if checkpointed) kept + extra + (i + 1)·block, where i counts from 0 in r
                + (of r, if not) (i + 1)·block
                + gradient for each layer above + room; the largest of these
    block, kept as in `held`
    extra       bytes that are kept or made beside `block` once a region has been computed again;
                below zero where what was kept is part of `block` (an input that the block itself
                would keep: -x)
    gradient    bytes of the gradients of one layer's weights
    room        bytes that backward through one layer needs beside what it finds: `room`
    Unit        bytes, a whole number
    Leaves out  everything outside of the layers: weights, states, head, logits
    Raises      ValueError for a count below zero or no layer
    """
    for name, value in (("gradient", gradient), ("room", room)):
        whole(name, value)
    layers = sum([whole("layers", n) for n, _ in regions])
    if layers == 0:
        raise ValueError("regions have no layer")
    below, done, most = held(regions, block=block, kept=kept), 0, 0
    for size, again in reversed(regions):
        below -= kept if again else size * block
        own = kept + extra if again else 0
        for i in reversed(range(size)):
            most = max(most, below + own + (i + 1) * block + done * gradient + room)
            done += 1
    return most


def room(batch: int, *, tokens: int, d_model: int, d_ff: int, value_bytes: int = 2) -> int:
    """Bytes that backward through a Llama block needs beside its activations, at its worst moment.

    Formula     B·T·D·b + D·F·b + 2·B·T·F·b
    Shapes      the gradient that arrives [B, T, D], that of the last matrix [D, F], and three
                [B, T, F] that the product's backward has at once, less the product itself
    Unit        bytes, a whole number
    Source      memlab.step, moment by moment
    Leaves out  blocks whose worst moment is another: F below 2·D, or so few tokens that the
                gradients of a layer weigh more than its activations
    Raises      ValueError for a count below zero
    """
    rows = whole("batch", batch) * whole("tokens", tokens)
    width, inner = whole("d_model", d_model), whole("d_ff", d_ff)
    return (rows * width + width * inner + 2 * rows * inner) * whole("value_bytes", value_bytes)


def best_size(layers: int, *, block: int, input: int) -> int:
    """How many layers a segment should have for the fewest bytes of activations at once.

    Formula     the smallest s with the least ceil(L / s) · x + s · block; near sqrt(L · x / block)
    Unit        layers, a whole number; 1 is every block by itself
    Source      Chen et al. 2016, arXiv:1604.06174, where block = x, and s = sqrt(L)
    Leaves out  gradients, which grow while activations shrink; regions smaller than a block
    Raises      ValueError for a count below zero or no layer
    """
    if whole("layers", layers) == 0:
        raise ValueError("layers=0; at least 1 is needed")
    whole("block", block)
    whole("input", input)
    sizes = range(1, layers + 1)
    costs = [-(-layers // s) * input + s * block for s in sizes]
    return costs.index(min(costs)) + 1


def flops(
    batch: int,
    *,
    tokens: int,
    d_model: int,
    d_ff: int,
    heads: int,
    kv_heads: int,
    head_dim: int,
    keep: str = "input",
    causal: bool = False,
) -> tuple[int, int, int]:
    """(forward, backward, again): operations of one Llama block that is a region by itself.

    Formula     forward     2·B·T·P + 4·B·T·T·N·H, P = 2·D·H·(N + K) + 3·D·F weights
                backward    4·B·T·P + 10·B·T·T·N·H, as flash attention makes its scores again
                again       2·B·T·(P - D·F) unless matmuls are kept: the second forward pass ends
                            before the last matrix, for whose result backward does not ask
                            + 4·B·T·T·N·H unless attention is kept
    causal      count the half of T·T that a causal kernel does not skip; PyTorch's counter counts
                all of it
    Unit        floating-point operations; a multiplication and an addition are two
    Source      torch.utils.flop_counter, sdpa_flop and sdpa_backward_flop; Dao et al. 2022,
                arXiv:2205.14135
    Leaves out  whatever is no matrix product; the diagonal of a causal T·T
    Raises      as `kept`
    """
    _known(keep)
    rows = whole("batch", batch) * whole("tokens", tokens)
    queries = whole("heads", heads) * whole("head_dim", head_dim)
    keys = whole("kv_heads", kv_heads) * head_dim
    last = whole("d_model", d_model) * whole("d_ff", d_ff)
    matrices = 2 * d_model * (queries + keys) + 3 * last
    scores = rows * tokens * queries // (2 if causal else 1)
    again = 0 if "matmuls" in keep else 2 * rows * (matrices - last)
    again += 0 if "attention" in keep else 4 * scores
    return 2 * rows * matrices + 4 * scores, 4 * rows * matrices + 10 * scores, again


def flops_again(regions: Sequence[tuple[int, bool]], *, forward: int, again: int) -> int:
    """Operations that all checkpointed regions compute again.

    Formula     (layers - 1) · forward + again for each region: only its last block can end early
    forward, again
                of one block, from `flops`
    Unit        floating-point operations
    Raises      ValueError for a count below zero
    """
    whole("forward", forward)
    whole("again", again)
    return sum([(whole("layers", n) - 1) * forward + again for n, cut in regions if cut])


def _known(keep: str) -> None:
    if keep not in KEEP:
        raise ValueError(f"unknown keep={keep!r}; known: {', '.join(KEEP)}")
