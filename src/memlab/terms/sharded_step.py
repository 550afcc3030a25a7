"""A step on one of several devices: what it keeps for backward, and what it sends.

R ranks · B batch · T tokens · D model width · F feed-forward width · N query heads ·
K key/value heads · H head width · L layers · S stages of a pipeline · b bytes per value
"""

from __future__ import annotations

from ..units import at_least_one, whole
from .activations import attention, feed_forward, linear_input, rms_norm
from .sharding import DIVIDED, check_tensor, part, stage_layers

SCHEDULES = ("gpipe", "1f1b", "interleaved1f1b")


def in_flight(
    micro_batches: int, *, stages: int, stage: int, schedule: str = "1f1b", each: int = 1
) -> int:
    """Micro-batches whose activations one of S ranks of a pipeline keeps at once.

    Formula     1f1b: min(m, S - stage); gpipe: m; interleaved1f1b, of v stages a rank each:
                min(m · v, (v - 1) · r + 2 · (S - 1 - stage) + 1)
    Shapes      r = m / max(1, floor(m / S)) micro-batches go through a stage before the rank's next
                one has its turn; v = `each`
    Unit        micro-batches, a whole number; interleaved: of one of the rank's v stages
    Source      Narayanan et al. 2021, arXiv:2104.04473, section 2.2; torch,
                torch/distributed/pipelining/schedules.py: Schedule1F1B, _get_warmup_ops
    Raises      as `stage_layers`; ValueError for an unknown schedule
    """
    stage_layers(stages, stages=stages, stage=stage)
    count = at_least_one("micro_batches", micro_batches)
    if schedule not in SCHEDULES:
        raise ValueError(f"schedule={schedule!r} is not described; known: {', '.join(SCHEDULES)}")
    if schedule == "gpipe":
        return count
    if schedule == "1f1b":
        return min(count, stages - stage)
    in_round = count // max(1, count // stages)
    warm_up = (at_least_one("each", each) - 1) * in_round + 2 * (stages - 1 - stage)
    return min(count * each, warm_up + 1)


def stage_buffers(
    batch: int,
    *,
    tokens: int,
    d_model: int,
    micro_batches: int,
    stages: int,
    stage: int,
    value_bytes: int = 2,
) -> int:
    """Bytes that torch's PipelineStage keeps to receive into, from its first step on.

    Formula     n · m · B · T · D · b, n = 2: the stream and its gradient, each micro-batch its own;
                1 in the first stage and in the last one
    Unit        bytes, a whole number
    Source      torch, torch/distributed/pipelining/stage.py: _setup_forward_recv_info,
                _create_grad_recv_info
    Leaves out  several stages on one rank, each of which has its own
    Raises      as `stage_layers`
    """
    stage_layers(stages, stages=stages, stage=stage)
    size = whole("batch", batch) * whole("tokens", tokens) * whole("d_model", d_model)
    size *= whole("value_bytes", value_bytes) * at_least_one("micro_batches", micro_batches)
    return size * ((stage > 0) + (stage < stages - 1))


def layer_activations(
    batch: int,
    *,
    tokens: int,
    d_model: int,
    d_ff: int,
    heads: int,
    kv_heads: int,
    head_dim: int,
    precision: str = "bf16",
    backend: str = "cpu",
    tensor: int = 1,
    sequence: bool = False,
    regather: bool = False,
    context: int = 1,
) -> int:
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
    check_tensor(tensor, heads=heads, kv_heads=kv_heads, d_ff=d_ff)
    if whole("tokens", tokens) % at_least_one("context", context):
        raise ValueError(f"context={context} does not divide T={tokens} (tokens)")
    rows = tokens // context
    if (sequence or regather) and rows % tensor:
        raise ValueError(f"tensor={tensor} does not divide T={rows} (tokens of a rank)")
    where = {"precision": precision, "backend": backend}
    norm_rows = rows // tensor if sequence or regather else rows
    input_rows = rows // tensor if regather else rows
    kept = 2 * rms_norm(batch, tokens=norm_rows, width=d_model, **where)
    kept += 2 * linear_input(batch, tokens=input_rows, width=d_model, readers=1, **where)
    kept += attention(
        batch,
        tokens=rows,
        heads=heads // tensor,
        kv_heads=kv_heads // tensor,
        head_dim=head_dim,
        **where,
    )
    return kept + feed_forward(batch, tokens=rows, d_ff=d_ff // tensor, precision=precision)


def gathered_kv(
    batch: int, *, tokens: int, kv_heads: int, head_dim: int, value_bytes: int = 2
) -> int:
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


def wire(weights: int, *, gradients: int, ranks: int, zero: int = 0) -> int:
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
    return part(moved * (at_least_one("ranks", ranks) - 1), ranks=ranks)


def tensor_wire(
    batch: int, *, tokens: int, d_model: int, layers: int, ranks: int, value_bytes: int = 2
) -> int:
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
    return part(2 * size * (at_least_one("ranks", ranks) - 1), ranks=ranks)
