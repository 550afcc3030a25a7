"""Sharding: what one of several devices holds, and what it asks of the wire.

R ranks (devices that share something) · B batch · T tokens · D model width · F feed-forward width ·
N query heads · K key/value heads · H head width · V vocabulary · L layers · S stages of a
pipeline · b bytes per value

A copy that every rank holds is replicated; one of which each holds a part is divided. Nothing is
divided exactly: a rank's part is rounded up to whole rows or values.
"""

from ..units import whole
from .activations import attention, feed_forward, linear_input, rms_norm
from .optimizer import numel
from .weights import group_size

# Rajbhandari et al. 2020, arXiv:1910.02054, section 5: what each stage divides among the ranks.
DIVIDED = {
    0: (),
    1: ("master", "optimizer"),
    2: ("master", "optimizer", "gradients", "accumulator"),
    3: ("master", "optimizer", "gradients", "accumulator", "weights"),
}


def divided(copy, zero):
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


def part(count, ranks):
    """The largest part when `count` things are dealt out to R ranks in one piece each.

    Formula     ceil(count / R)
    Unit        rows, values, layers: whatever was counted
    Source      torch.chunk, by which FSDP2 and DTensor cut
    Raises      TypeError or ValueError for a negative count, ValueError for no rank
    """
    return -(-whole("count", count) // _some("ranks", ranks))


def held(count, ranks, rank=0):
    """The part that one rank really holds, without padding: the last ones may get less, or nothing.

    Formula     min(c, max(0, count - rank · c)), c = ceil(count / R)
    Unit        as `part`
    Raises      as `part`; ValueError for a rank that does not exist
    """
    size = part(count, ranks)
    if whole("rank", rank) >= ranks:
        raise ValueError(f"rank={rank} of R={ranks}; ranks count from 0 to {ranks - 1}")
    return min(size, max(0, count - rank * size))


def row_shard(shape, ranks, rank=None):
    """The shape of one rank's part of a tensor that is cut by rows, as FSDP2 cuts each parameter.

    Formula     [ceil(shape[0] / R), the rest]; given a rank, the rows of it that are not padding
    Unit        values along each dimension
    Shapes      every rank stores the padded rows, of weights and of gradients; optimizer states
                are made like the rows that are not padding. On rank 0 the two are the same.
    Source      torch 2.13, torch/distributed/fsdp/_fully_shard/_fsdp_param.py
    Raises      as `held`; ValueError for a tensor without dimensions
    """
    if len(shape) == 0:
        raise ValueError("shape=() has no rows to deal out")
    rows = part(shape[0], ranks) if rank is None else held(shape[0], ranks, rank)
    return (rows,) + tuple(shape[1:])


def flat_shard(count, ranks, rank=None):
    """How many values of a flattened tensor one rank has, as ZeRO 1 and 2 cut it.

    Formula     ceil(P / R); given a rank, those that are not padding
    Unit        values, a whole number
    Source      Rajbhandari et al. 2020, arXiv:1910.02054; memlab.lab.shard
    Leaves out  flattening all tensors into one buffer first, which pads once and not once a tensor
    Raises      as `held`
    """
    return part(count, ranks) if rank is None else held(count, ranks, rank)


def gathered(shape, ranks):
    """How many values a tensor has when it has been gathered from rows: with the padding.

    Formula     R · ceil(shape[0] / R) · the rest
    Unit        values, a whole number
    Shapes      gathered in one buffer for all tensors of a unit, then copied to one buffer each;
                gradients wait in one padded buffer to be reduced
    Source      torch 2.13, torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py
    Raises      as `row_shard`
    """
    return ranks * numel(row_shard(shape, ranks))


def whole_tensors(counts, ranks):
    """How many values each rank has where tensors are not cut but dealt out whole.

    Formula     largest tensor first, each to the rank that has least so far
    Unit        values, one number a rank; the largest cannot be below the largest tensor
    Source      torch.distributed.optim.ZeroRedundancyOptimizer, `_partition_parameters`
    Raises      as `part`
    """
    loads = [0] * _some("ranks", ranks)
    for count in reversed(sorted([whole("count", each) for each in counts])):
        loads[loads.index(min(loads))] += count
    return loads


def split(shape, axis, ranks):
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
        sizes[axis] = part(sizes[axis], ranks)
    return tuple(sizes)


def stage_layers(layers, stages, stage):
    """Layers of one pipeline stage: as even as can be, the first stages one more.

    Formula     floor(L / S), + 1 for the first L mod S stages
    Unit        layers, a whole number
    Raises      ValueError for more stages than layers, or a stage that does not exist
    """
    if _some("stages", stages) > whole("layers", layers):
        raise ValueError(f"stages={stages} is more than L={layers}; a stage has at least one layer")
    if whole("stage", stage) >= stages:
        raise ValueError(f"stage={stage} of {stages}; stages count from 0 to {stages - 1}")
    return layers // stages + (1 if stage < layers % stages else 0)


def in_flight(micro_batches, stages, stage):
    """Micro-batches whose activations one stage keeps at once, one forward and one backward a time.

    Formula     min(m, S - stage): the first stage waits longest for its first gradient
    Unit        micro-batches, a whole number
    Source      Narayanan et al. 2021, arXiv:2104.04473, section 2.2.1 (1F1B)
    Leaves out  the other schedules: all forward first keeps m everywhere, interleaved ones more
    Raises      as `stage_layers`
    """
    stage_layers(stages, stages, stage)
    return min(_some("micro_batches", micro_batches), stages - stage)


def layer_activations(
    batch,
    tokens,
    d_model,
    d_ff,
    heads,
    kv_heads,
    head_dim,
    precision="bf16",
    backend="cpu",
    *,
    tensor=1,
    sequence=False,
    regather=False,
    context=1,
):
    """Bytes that one rank keeps of one gated layer (memlab.lab.models.llama), its input included.

    Formula     2 norms + the inputs of q, k, v and of gate, up + (attention + feed-forward) / t,
                of T / c tokens; sequence: norms / t; regather: the two inputs / t as well
    Shapes      t ranks have N/t and K/t heads and F/t of the width each. Without `sequence` the
                stream [B, T/c, D] is whole on every rank; with it, T is divided between the
                attention and feed-forward parts. torch's DTensor keeps what it gathered there,
                Megatron gathers again in backward (`regather`)
    Unit        bytes, a whole number
    Source      Korthikanti et al. 2022, arXiv:2205.05198, section 4.2
    Leaves out  autocast; buffers of the wire; k and v of the other ranks: `gathered_kv`
    Raises      ValueError where t does not divide N, K or F, where c, or t with `sequence`, does
                not divide T; as memlab.terms.activations
    """
    check_tensor(tensor, heads, kv_heads, d_ff)
    if whole("tokens", tokens) % _some("context", context):
        raise ValueError(f"context={context} does not divide T={tokens} (tokens)")
    rows = tokens // context
    if (sequence or regather) and rows % tensor:
        raise ValueError(f"tensor={tensor} does not divide T={rows} (tokens of a rank)")
    where = (precision, backend)
    norm_rows = rows // tensor if sequence or regather else rows
    input_rows = rows // tensor if regather else rows
    kept = 2 * rms_norm(batch, norm_rows, d_model, *where)
    kept += 2 * linear_input(batch, input_rows, d_model, 1, *where)
    kept += attention(batch, rows, heads // tensor, kv_heads // tensor, head_dim, *where)
    return kept + feed_forward(batch, rows, d_ff // tensor, True, precision)


def gathered_kv(batch, tokens, kv_heads, head_dim, value_bytes=2):
    """Bytes of the keys and values of all tokens, which context parallelism gathers for a layer.

    Formula     2 · B · T · K · H · b
    Shapes      k, v: [B, T, K, H], while attention of one layer runs; a ring passes them on in
                pieces and has two pieces at a time
    Unit        bytes, a whole number
    Source      Grattafiori et al. 2024 (Llama 3), arXiv:2407.21783, section 3.3.2; ring: Liu et
                al. 2023, arXiv:2310.01889
    Raises      as `part`
    """
    rows = whole("batch", batch) * whole("tokens", tokens)
    width = whole("kv_heads", kv_heads) * whole("head_dim", head_dim)
    return 2 * rows * width * whole("value_bytes", value_bytes)


def wire(weights, gradients, ranks, zero=0):
    """Bytes that one data-parallel rank sends in a step, with collectives that pass parts on.

    Formula     ring: an all-gather or a reduce-scatter of n bytes sends n · (R - 1) / R.
                ZeRO 0: reduce-scatter and all-gather the gradients (an all-reduce);
                1, 2: reduce-scatter the gradients, all-gather the weights; 3: reduce-scatter the
                gradients, all-gather the weights twice (forward, backward)
    Unit        bytes, rounded up
    Source      Rajbhandari et al. 2020, arXiv:1910.02054, section 7
    Leaves out  latency, several micro-batches, padding; the unit that FSDP2 keeps gathered from
                forward to backward
    Raises      as `divided` and `part`
    """
    if zero not in DIVIDED:
        raise ValueError(f"zero={zero!r} is not a stage of ZeRO; known: 0, 1, 2, 3")
    whole("weights", weights)
    moved = whole("gradients", gradients)
    moved += gradients if zero == 0 else weights if zero < 3 else 2 * weights
    return part(moved * (_some("ranks", ranks) - 1), ranks)


def tensor_wire(batch, tokens, d_model, layers, ranks, value_bytes=2):
    """Bytes that one tensor-parallel rank sends in a step.

    Formula     4 · L all-reduces of B · T · D · b: after attention and after feed-forward, forward
                and backward; each sends 2 · n · (R - 1) / R
    Unit        bytes, rounded up
    Source      Shoeybi et al. 2019, arXiv:1909.08053, section 3; with `sequence` each is a
                reduce-scatter and an all-gather, which send as much
    Leaves out  the embedding and the head; gathering again in backward
    Raises      as `part`
    """
    size = whole("batch", batch) * whole("tokens", tokens) * whole("d_model", d_model)
    size *= whole("value_bytes", value_bytes) * 4 * whole("layers", layers)
    return part(2 * size * (_some("ranks", ranks) - 1), ranks)


def check_tensor(tensor, heads, kv_heads, d_ff):
    """Refuse a tensor-parallel size that would cut a head, or a unit, in two.

    Formula     t divides K, N and F
    Unit        none: it returns nothing
    Source      Shoeybi et al. 2019, arXiv:1909.08053, section 3
    Raises      ValueError naming the width that it does not divide
    """
    group_size(heads, kv_heads)
    _some("tensor", tensor)
    for letter, size, what in (
        ("K", kv_heads, "key/value heads"),
        ("N", heads, "query heads"),
        ("F", d_ff, "feed-forward width"),
    ):
        if size % tensor:
            raise ValueError(f"tensor={tensor} does not divide {letter}={size} ({what})")


def _some(name, count):
    if whole(name, count) == 0:
        raise ValueError(f"{name}=0; at least 1 is needed")
    return count
