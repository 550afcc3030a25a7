"""Sharding: what one of several devices holds of the parameters and their copies.

R ranks (devices that share something) · P parameters · F feed-forward width · N query heads ·
K key/value heads · L layers · S stages of a pipeline

A copy that every rank holds is replicated; one of which each holds a part is divided. Nothing is
divided exactly: a rank's part is rounded up to whole rows or values.
"""

from __future__ import annotations

from ..base.message import Message
from ..units import at_least_one, whole
from .optimizer import numel
from .weights import group_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# Rajbhandari et al. 2020, arXiv:1910.02054, section 5: what each stage divides among the ranks.
DIVIDED = {
    0: (),
    1: ("master", "optimizer"),
    2: ("master", "optimizer", "gradients", "accumulator"),
    3: ("master", "optimizer", "gradients", "accumulator", "weights"),
}


def divided(copy: str, *, zero: int) -> bool:
    """Whether a stage of ZeRO divides a copy of the parameters among the data-parallel ranks.

    Formula     0: none; 1: master and optimizer; 2: gradients and accumulator too; 3: weights too
    Shapes      copy: weights, master, gradients, accumulator or optimizer; zero: 0 to 3
    Unit        True or False
    Source      Rajbhandari et al. 2020, arXiv:1910.02054
    Raises      ValueError for another copy or stage
    """
    if zero not in DIVIDED:
        raise ValueError(f"zero={zero!r} is not a stage of ZeRO; known: 0, 1, 2, 3")
    if copy not in DIVIDED[3]:
        raise ValueError(f"unknown copy {copy!r}; known: {', '.join(DIVIDED[3])}")
    return copy in DIVIDED[zero]


def part(count: int, *, ranks: int) -> int:
    """The largest part when `count` things are dealt out to R ranks in one piece each.

    Formula     ceil(count / R)
    Unit        rows, values, layers: whatever was counted
    Source      torch.chunk, by which FSDP2 and DTensor cut
    Raises      TypeError or ValueError for a negative count, ValueError for no rank
    """
    return -(-whole("count", count) // at_least_one("ranks", ranks))


def held(count: int, *, ranks: int, rank: int = 0) -> int:
    """The part that one rank really holds, without padding: the last ones may get less, or nothing.

    Formula     min(c, max(0, count - rank · c)), c = ceil(count / R)
    Unit        as `part`
    Raises      as `part`; ValueError for a rank that does not exist
    """
    size = part(count, ranks=ranks)
    if whole("rank", rank) >= ranks:
        raise ValueError(f"rank={rank} of R={ranks}; ranks count from 0 to {ranks - 1}")
    return min(size, max(0, count - rank * size))


def row_shard(shape: Sequence[int], *, ranks: int, rank: int | None = None) -> tuple[int, ...]:
    """The shape of one rank's part of a tensor that is cut by rows, as FSDP2 cuts each parameter.

    Formula     [ceil(shape[0] / R), the rest]; given a rank, the rows of it that are not padding
    Unit        values along each dimension
    Shapes      every rank stores the padded rows, of weights and of gradients; optimizer states
                are made like the rows that are not padding. On rank 0 the two are the same.
    Source      torch, torch/distributed/fsdp/_fully_shard/_fsdp_param.py
    Raises      as `held`; ValueError for a tensor without dimensions
    """
    if len(shape) == 0:
        raise ValueError("shape=() has no rows to deal out")
    rows = part(shape[0], ranks=ranks) if rank is None else held(shape[0], ranks=ranks, rank=rank)
    return (rows,) + tuple(shape[1:])


def flat_shard(count: int, *, ranks: int, rank: int | None = None) -> int:
    """How many values of a flattened tensor one rank has, as ZeRO 1 and 2 cut it.

    Formula     ceil(P / R); given a rank, those that are not padding
    Unit        values, a whole number
    Source      Rajbhandari et al. 2020, arXiv:1910.02054; memlab.lab.shard
    Leaves out  flattening all tensors into one buffer first, which pads once and not once a tensor
    Raises      as `held`
    """
    return part(count, ranks=ranks) if rank is None else held(count, ranks=ranks, rank=rank)


def gathered(shape: Sequence[int], *, ranks: int) -> int:
    """How many values a tensor has when it has been gathered from rows: with the padding.

    Formula     R · ceil(shape[0] / R) · the rest
    Unit        values, a whole number
    Shapes      gathered in one buffer for all tensors of a unit, then copied to one buffer each;
                gradients wait in one padded buffer to be reduced
    Source      torch, torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py
    Raises      as `row_shard`
    """
    return ranks * numel(row_shard(shape, ranks=ranks))


def whole_tensors(counts: Sequence[int], *, ranks: int) -> list[int]:
    """How many values each rank has where tensors are not cut but dealt out whole.

    Formula     largest tensor first, each to the rank that has least so far
    Unit        values, one number a rank; the largest cannot be below the largest tensor
    Source      torch.distributed.optim.ZeroRedundancyOptimizer, `_partition_parameters`
    Raises      as `part`
    """
    loads = [0] * at_least_one("ranks", ranks)
    for count in reversed(sorted([whole("count", each) for each in counts])):
        loads[loads.index(min(loads))] += count
    return loads


def split(shape: Sequence[int], *, axis: int | None, ranks: int) -> tuple[int, ...]:
    """The shape of one rank's part of a matrix under tensor parallelism.

    Formula     shape[axis] / R, rounded up; axis None: every rank has all of it
    Unit        values along each dimension
    Shapes      axis 0 of [outputs, inputs] for q, k, v, gate and up (by columns of x·W, whole heads
                each), axis 1 for out and down (by rows, the results are added), axis 0 for the
                embedding and the head (by words), None for norms
    Source      Shoeybi et al. 2019, arXiv:1909.08053, section 3
    Raises      as `part`
    """
    sizes = list(shape)
    if axis is not None:
        sizes[axis] = part(sizes[axis], ranks=ranks)
    return tuple(sizes)


def stage_layers(layers: int, *, stages: int, stage: int) -> int:
    """Layers of one pipeline stage: as even as can be, the first stages one more.

    Formula     floor(L / S), + 1 for the first L mod S stages
    Unit        layers, a whole number
    Raises      ValueError for more stages than layers, or a stage that does not exist
    """
    if at_least_one("stages", stages) > whole("layers", layers):
        pattern = "stages={stages} is more than L={layers}; a stage has at least one layer"
        raise ValueError(Message(pattern, stages=stages, layers=layers))
    if whole("stage", stage) >= stages:
        raise ValueError(f"stage={stage} of {stages}; stages count from 0 to {stages - 1}")
    return layers // stages + (1 if stage < layers % stages else 0)


def check_tensor(tensor: int, *, heads: int, kv_heads: int, d_ff: int) -> None:
    """Refuse a tensor-parallel size that would cut a head, or a unit, in two.

    Formula     t divides K, N and F
    Unit        none: it returns nothing
    Source      Shoeybi et al. 2019, arXiv:1909.08053, section 3
    Raises      ValueError naming the width that it does not divide
    """
    group_size(heads, kv_heads=kv_heads)
    at_least_one("tensor", tensor)
    for letter, size, what in (
        ("K", kv_heads, "key/value heads"),
        ("N", heads, "query heads"),
        ("F", d_ff, "feed-forward width"),
    ):
        if size % tensor:
            pattern = "tensor={tensor} does not divide {letter}={size} ({what})"
            raise ValueError(Message(pattern, tensor=tensor, letter=letter, size=size, what=what))
