"""What one rank of a serving engine keeps of a model's parameters, and its table of rotations."""

from __future__ import annotations

from ..base.message import Message
from ..families import record_of
from ..formats import storage
from ..model import Model
from ..model.tensors import Tensor
from ..terms.allocator import CachingAllocator
from ..terms.engine_pool import rank_heads
from .quantized import Quantized, matrices

PADDED = 64  # vLLM, vocab_parallel_embedding.py: rows of the embedding are a multiple of this
# Divided by R ranks: by outputs, and by inputs. What is in neither is kept whole by every rank.
OUTPUTS = ("q", "gate", "up", "gate_up", "q_b", "kv_b", "shared_gate", "shared_up", "experts_up")
INPUTS = ("out", "down", "shared_down", "experts_down")
# Matrices that lie in one tensor, and so do their scales: linear.py, QKVParallelLinear and others.
FUSED = {"q": "qkv", "k": "qkv", "v": "qkv", "gate": "gate_up", "up": "gate_up"}
FUSED.update({"shared_gate": "shared_gate_up", "shared_up": "shared_gate_up"})


def kept_weights(
    model: Model, ranks: int, dtype: str, how: Quantized | None = None, kernel: str = "marlin"
) -> int:
    """Bytes of the parameters of one rank, as PyTorch's allocator counts them.

    Formula     the blocks of `kept_tensors`: each is up to 1 MiB larger than its tensor, where the
                rest of a segment is too small to be cut off
    Unit        bytes
    Source      memlab.terms.allocator
    Leaves out  the workspace of a kernel of packed matrices. With expandable segments a block is no
                larger than its tensor
    Raises      as `kept_tensors`
    """
    allocator = CachingAllocator()
    for number, size in enumerate(kept_tensors(model, ranks, dtype, how, kernel)):
        allocator.malloc(number, size)
    return allocator.allocated


def kept_tensors(
    model: Model, ranks: int, dtype: str, how: Quantized | None = None, kernel: str = "marlin"
) -> list[int]:
    """Bytes of each tensor of parameters that one rank keeps, layer by layer.

    Formula     embedding and head: ceil(V / 64) · 64 / R rows; q, gate, up: outputs / R; out, down:
                inputs / R; k, v: max(1, K / R) heads; experts: each divided; the rest whole
    Shapes      q, k and v lie in one tensor, and gate and up; so do their scales. Latent attention
                multiplies by the keys' and values' matrix in `dtype`: a packed one is kept twice
    how         the checkpoint's quantization; None: all is in `dtype`
    kernel      of experts in mxfp4, which pads them: quantized.KERNELS
    Unit        bytes
    Source      vLLM, llama.py, linear.py, vocab_parallel_embedding.py, fused_moe/layer.py,
                mla/common.py
    Raises      ValueError where R divides neither N, F nor an expert's width M, and where a rank's
                part of a packed matrix would end inside a group that shares a scale
    """
    sizes = {"N": model.heads, "F": model.d_ff if not model.experts or model.dense_layers else 0}
    sizes |= {"M": model.expert_ff, "width of shared experts": model.shared_ff}
    for letter, size in sizes.items():
        if size % ranks:
            pattern = "tensor={tensor} does not divide {letter}={size}"
            raise ValueError(Message(pattern, tensor=ranks, letter=letter, size=size))
    names: list[str] = []  # in their order, which a dict of MicroPython does not keep
    made: dict[str, tuple[int, list[int]]] = {}  # name: how many layers have it, its tensors
    for tensor in model.tensors():
        name = ".".join([FUSED.get(word, word) for word in tensor.name.split(".")])
        mine = _tensors(model, tensor, ranks, dtype, how, kernel)
        if name in made:
            mine = [made[name][1][i] + mine[i] for i in range(len(mine))]
        else:
            names.append(name)
        made[name] = tensor.copies, mine
    if how is not None and model.latent is not None and "attention" not in how.keeps:
        keys = model.heads // ranks * (model.latent.nope + model.latent.value)
        names.append("kv_b, unpacked")
        made[names[-1]] = model.layers, [storage(keys * model.latent.kv_rank, dtype)]
    sizes_of: list[int] = []
    for layer in range(max([made[name][0] for name in names])):
        for name in names:
            if layer < made[name][0]:
                sizes_of += made[name][1]
    return sizes_of


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
    usual = model.config.get("rotary_pct", record_of(model.family).turned)
    share = told.get("partial_rotary_factor", model.config.get("partial_rotary_factor", usual))
    width = model.latent.rope if model.latent else int(model.head_dim * share)
    if model.family == "gpt_oss":
        dtype = "fp32"  # gpt_oss.py asks get_rope for it
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


def _tensors(
    model: Model, tensor: Tensor, ranks: int, dtype: str, how: Quantized | None, kernel: str
) -> list[int]:
    """Bytes of the tensors that a rank has in the place of one: codes, scales ... or itself."""
    if how is None or not how.packs(tensor):
        return [storage(_part(model, tensor, ranks), dtype)]
    name, many = tensor.name.split(".")[-1], matrices(model, tensor)[0]
    size = _cut(model, tensor, ranks, how)
    made = how.kept(*size)
    if how.format == "mxfp4" and name.startswith("experts_"):
        made = how.padded(*size, name, kernel)
    return [many * each for each in made]


def _cut(model: Model, tensor: Tensor, ranks: int, how: Quantized) -> tuple[int, int]:
    """Outputs and inputs of a packed matrix on one rank."""
    many, outputs, inputs = matrices(model, tensor)
    name = tensor.name.split(".")[-1]
    if name in INPUTS:
        mine = outputs, inputs // ranks
    elif name in OUTPUTS or name in ("k", "v", "qkv"):
        mine = _part(model, tensor, ranks) // (many * inputs), inputs
    else:
        return outputs, inputs
    groups = how.groups()
    for size, group in ((mine[0], groups[0]), (mine[1], groups[1])):
        if ranks > 1 and size % group:
            pattern = "tensor={tensor} cuts a packed matrix at {size}, no multiple of the {group} "
            pattern += "that share a scale"
            told = {"tensor": ranks, "size": size, "group": group}
            raise ValueError(Message(pattern, **told))
    return mine
