"""What one rank of a serving engine keeps of a model's parameters, and its table of rotations."""

from __future__ import annotations

from ..base.message import Message
from ..formats import storage
from ..model import Model
from ..model.tensors import Tensor
from ..terms.engine_pool import rank_heads

PADDED = 64  # vLLM, vocab_parallel_embedding.py: rows of the embedding are a multiple of this
# Divided by R ranks: by outputs, and by inputs. What is in neither is kept whole by every rank.
OUTPUTS = ("q", "gate", "up", "gate_up", "q_b", "kv_b", "shared_gate", "shared_up", "experts_up")
INPUTS = ("out", "down", "shared_down", "experts_down")
PART_TURNED = {"gpt_neox": 0.25, "glm4": 0.5, "glm4_moe": 0.5}  # of a head, by the class's default


def kept_weights(model: Model, ranks: int, dtype: str) -> int:
    """Bytes of the parameters of one rank.

    Formula     embedding and head: ceil(V / 64) · 64 / R rows; q, gate, up: outputs / R; out, down:
                inputs / R; k, v: max(1, K / R) heads; experts: each divided; the rest whole
    Unit        bytes
    Source      vLLM, llama.py, linear.py, vocab_parallel_embedding.py, fused_moe/layer.py
    Leaves out  the copies that a quantized layer keeps of its scales
    Raises      ValueError where R divides neither N, F nor an expert's width M
    """
    sizes = {"N": model.heads, "F": model.d_ff if not model.experts or model.dense_layers else 0}
    sizes |= {"M": model.expert_ff, "width of shared experts": model.shared_ff}
    for letter, size in sizes.items():
        if size % ranks:
            pattern = "tensor={tensor} does not divide {letter}={size}"
            raise ValueError(Message(pattern, tensor=ranks, letter=letter, size=size))
    count = sum(_part(model, tensor, ranks) * tensor.copies for tensor in model.tensors())
    return storage(count, dtype)


def rotary_table(model: Model, dtype: str) -> int:
    """Bytes of the cosines and sines that vLLM keeps for every position, once for all layers.

    Formula     positions · H · b: of the part of a head that is turned, half cosines, half sines
    Unit        bytes
    Source      vLLM, rotary_embedding.py, _compute_cos_sin_cache
    Leaves out  what a scaling adds to the positions (YaRN keeps factor · positions)
    """
    if model.learned_positions:
        return 0
    told = model.config.get("rope_parameters") or {}
    usual = model.config.get("rotary_pct", PART_TURNED.get(model.family, 1))
    share = told.get("partial_rotary_factor", model.config.get("partial_rotary_factor", usual))
    width = model.latent.rope if model.latent else int(model.head_dim * share)
    tables = 2 if model.family == "gemma3_text" else 1  # windowed layers turn at their own pace
    return tables * storage(model.positions * width, dtype)


def shares(model: Model, ranks: int) -> list[int]:
    """What each kind of layer has widest on one rank, in values a token: see forward_peak."""
    heads, copies = model.heads // ranks, 3 if model.gated else 2
    if model.latent:
        kept = model.latent
        widths = [heads * (2 * kept.head + kept.nope + 2 * kept.value)]
    else:
        own = rank_heads(model.kv_heads, ranks=ranks)
        widths = [2 * (heads + own) * model.head_dim]
    if not model.experts or model.dense_layers:
        widths.append(copies * model.d_ff // ranks)
    if model.experts:
        one = model.expert_ff // ranks
        widths.append(model.experts_per_token * (max(2 * one, model.d_model) + one))
    return widths


def _part(model: Model, tensor: Tensor, ranks: int) -> int:
    """Values of one tensor that a rank keeps."""
    if tensor.name in ("embedding", "lm_head"):
        rows = -(-tensor.shape[0] // PADDED) * PADDED
        return -(-rows // ranks) * tensor.shape[1]
    words = tensor.name.split(".")
    bias = words[-1] == "bias"
    name = words[-2] if bias else words[-1]
    if name in ("k", "v", "qkv"):
        own = rank_heads(model.kv_heads, ranks=ranks) * model.head_dim
        one = tensor.numel // (model.kv_heads * model.head_dim)
        if name == "qkv":
            one = tensor.numel // ((model.heads + 2 * model.kv_heads) * model.head_dim)
            own = 2 * own + model.heads * model.head_dim // ranks
        return own * one
    if name in OUTPUTS or (name in INPUTS and not bias) or name == "sinks":
        return tensor.numel // ranks
    return tensor.numel
