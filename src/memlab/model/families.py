"""What the models of one family have in common, as defaults of `Model`'s flags.

A family here is a `model_type` of Hugging Face transformers (read from its modelling code, release
5.23), plus nanochat. Every flag can be overridden for one model.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

# What a family does unless its row says otherwise: the llama block, the most common one today.
_COMMON: dict[str, Any] = {
    "tied": False,  # the output head reuses the embedding
    "gated": True,  # the feed-forward layer has a gate matrix
    "norm": "rmsnorm",  # or "layernorm", which has a bias too
    "norm_affine": True,  # the norms have parameters
    "norm_bias": True,  # of layernorm: False leaves it a weight alone
    "block_norms": 2,  # in a layer, those on queries and keys aside: 1 to 4
    "final_norm": True,  # one more norm before the output head
    "qk_norm": False,  # norms on queries and keys, of width H, shared by the heads
    "wide_qk_norm": False,  # ... of all heads at once: N·H and K·H
    "qkv_bias": False,
    "out_bias": False,
    "ff_bias": False,
    "fused_qkv": False,  # one matrix for q, k and v
    "fused_gate": False,  # one matrix for gate and up
    "conv1d": False,  # weights stored [inputs, outputs], the transpose of nn.Linear
    "learned_positions": False,  # otherwise rotary: no parameters
    "position_offset": 0,  # rows of the position table beyond `positions`
    "value_embeddings": False,  # one more table on every second layer, the last included
    "residual_scalars": False,  # learned scalars that mix the residual stream
    "expert_bias": False,  # experts and their router have biases
    "expert_rows": False,  # experts are stored [inputs, outputs]
    "sinks": False,  # a learned score for each head beside those of its tokens
    "shared_gated": False,  # what the shared experts give is weighed by a gate of its own
}

_BIASES: dict[str, Any] = {"qkv_bias": True, "out_bias": True, "ff_bias": True}
_CLASSIC: dict[str, Any] = {"norm": "layernorm", "gated": False} | _BIASES

_OWN: dict[str, dict[str, Any]] = {
    "gpt2": _CLASSIC
    | {
        "tied": True,
        "fused_qkv": True,
        "conv1d": True,
        "learned_positions": True,
    },
    "llama": {},
    "mistral": {},
    "qwen2": {"qkv_bias": True},
    "qwen3": {"qk_norm": True},
    "gemma": {"tied": True},
    "opt": _CLASSIC | {"tied": True, "learned_positions": True, "position_offset": 2},
    "gpt_neox": _CLASSIC | {"fused_qkv": True},
    "phi3": {"fused_qkv": True, "fused_gate": True},
    "olmo": {"norm": "layernorm", "norm_affine": False},
    "olmo2": {"qk_norm": True, "wide_qk_norm": True},
    "smollm3": {"tied": True},
    "granite": {},
    "starcoder2": _CLASSIC | {"tied": True},
    "glm4": {"qkv_bias": True, "fused_gate": True, "block_norms": 4},
    "gemma2": {"tied": True, "block_norms": 4},
    "gemma3_text": {"tied": True, "block_norms": 4, "qk_norm": True},
    "cohere2": {"tied": True, "norm": "layernorm", "norm_bias": False, "block_norms": 1},
    "seed_oss": {"qkv_bias": True},
    "ministral": {},
    # https://github.com/karpathy/nanochat/blob/master/nanochat/gpt.py
    "nanochat": {
        "gated": False,
        "norm_affine": False,
        "qk_norm": True,
        "value_embeddings": True,
        "residual_scalars": True,
    },
}

# Families whose feed-forward layers are mixtures of experts.
_MIXED: dict[str, dict[str, Any]] = {
    "qwen3_moe": {"qk_norm": True},
    "mixtral": {},
    "olmoe": {"qk_norm": True, "wide_qk_norm": True},
    "qwen2_moe": {"qkv_bias": True, "shared_gated": True},
    "glm4_moe": {},
    "gpt_oss": {"qkv_bias": True, "out_bias": True, "expert_bias": True}
    | {"expert_rows": True, "sinks": True},
    "llama4_text": {"expert_rows": True},
    "deepseek_v2": {},
    "deepseek_v3": {},
}
# Families whose keys and values are made from a latent.
LATENTS = ("deepseek_v2", "deepseek_v3")
MIXTURES = tuple(sorted(_MIXED))
_OWN |= _MIXED

FAMILIES = {name: _COMMON | own for name, own in _OWN.items()}
