"""Which key of a config.json says which field of `Model`, family by family.

A key that is left out has the default of the family's configuration class in transformers 5.23; the
keys that set the shape have none here, because a forgotten width must not turn into somebody
else's. Long, because it is a table with a row for each family.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

REQUIRED = object()

# Field of Model -> (key, default). A default of None leaves the field to Model.
# https://github.com/huggingface/transformers/tree/v5.0.0/src/transformers/models/<family>
_SHAPE: dict[str, tuple[str, Any]] = {
    "layers": ("num_hidden_layers", REQUIRED),
    "d_model": ("hidden_size", REQUIRED),
    "heads": ("num_attention_heads", REQUIRED),
    "vocab": ("vocab_size", REQUIRED),
    "d_ff": ("intermediate_size", REQUIRED),
}
_GROUPED = _SHAPE | {
    "kv_heads": ("num_key_value_heads", None),
    "head_dim": ("head_dim", None),
    "tied": ("tie_word_embeddings", False),
}
_ATTENTION_BIAS = {"qkv_bias": ("attention_bias", False), "out_bias": ("attention_bias", False)}

KEYS: dict[str, dict[str, tuple[str, Any]]] = {
    "gpt2": {
        "layers": ("n_layer", REQUIRED),
        "d_model": ("n_embd", REQUIRED),
        "heads": ("n_head", REQUIRED),
        "vocab": ("vocab_size", REQUIRED),
        "d_ff": ("n_inner", None),
        "positions": ("n_positions", 1024),
        "tied": ("tie_word_embeddings", True),
    },
    "llama": _GROUPED
    | _ATTENTION_BIAS
    | {
        "ff_bias": ("mlp_bias", False),
        "positions": ("max_position_embeddings", 2048),
    },
    "mistral": _GROUPED
    | {
        "kv_heads": ("num_key_value_heads", 8),
        "positions": ("max_position_embeddings", 131072),
    },
    "qwen2": _GROUPED
    | {
        "kv_heads": ("num_key_value_heads", 32),
        "positions": ("max_position_embeddings", 32768),
    },
    "qwen3": _GROUPED
    | _ATTENTION_BIAS
    | {
        "kv_heads": ("num_key_value_heads", 32),
        "head_dim": ("head_dim", 128),
        "positions": ("max_position_embeddings", 32768),
    },
    "gemma": _GROUPED
    | _ATTENTION_BIAS
    | {
        "kv_heads": ("num_key_value_heads", 16),
        "head_dim": ("head_dim", 256),
        "tied": ("tie_word_embeddings", True),
        "positions": ("max_position_embeddings", 8192),
    },
    "opt": _SHAPE
    | {
        "d_ff": ("ffn_dim", REQUIRED),
        "embed_dim": ("word_embed_proj_dim", None),
        "qkv_bias": ("enable_bias", True),
        "out_bias": ("enable_bias", True),
        "ff_bias": ("enable_bias", True),
        "norm_affine": ("layer_norm_elementwise_affine", True),
        "final_norm": ("do_layer_norm_before", True),
        "tied": ("tie_word_embeddings", True),
        "positions": ("max_position_embeddings", 2048),
    },
    "gpt_neox": _SHAPE
    | {
        "qkv_bias": ("attention_bias", True),
        "out_bias": ("attention_bias", True),
        "tied": ("tie_word_embeddings", False),
        "positions": ("max_position_embeddings", 2048),
    },
    "phi3": _GROUPED | {"positions": ("max_position_embeddings", 4096)},
    "olmo": _GROUPED | _ATTENTION_BIAS | {"positions": ("max_position_embeddings", 2048)},
    "olmo2": _GROUPED | _ATTENTION_BIAS | {"positions": ("max_position_embeddings", 2048)},
    "smollm3": _GROUPED
    | _ATTENTION_BIAS
    | {
        "kv_heads": ("num_key_value_heads", 4),
        "ff_bias": ("mlp_bias", False),
        "tied": ("tie_word_embeddings", True),
        "positions": ("max_position_embeddings", 32768),
    },
    "granite": _GROUPED
    | _ATTENTION_BIAS
    | {"ff_bias": ("mlp_bias", False), "positions": ("max_position_embeddings", 2048)},
    "starcoder2": _GROUPED
    | dict.fromkeys(("qkv_bias", "out_bias", "ff_bias"), ("use_bias", True))
    | {
        "kv_heads": ("num_key_value_heads", 2),
        "tied": ("tie_word_embeddings", True),
        "positions": ("max_position_embeddings", 4096),
    },
    "glm4": _GROUPED
    | {
        "kv_heads": ("num_key_value_heads", 2),
        "head_dim": ("head_dim", 128),
        "qkv_bias": ("attention_bias", True),
        "positions": ("max_position_embeddings", 131072),
    },
    "gemma2": _GROUPED
    | _ATTENTION_BIAS
    | {
        "kv_heads": ("num_key_value_heads", 4),
        "head_dim": ("head_dim", 256),
        "tied": ("tie_word_embeddings", True),
        "positions": ("max_position_embeddings", 8192),
    },
    "gemma3_text": _GROUPED
    | _ATTENTION_BIAS
    | {
        "kv_heads": ("num_key_value_heads", 4),
        "head_dim": ("head_dim", 256),
        "tied": ("tie_word_embeddings", True),
        "positions": ("max_position_embeddings", 131072),
    },
    "cohere2": _GROUPED
    | _ATTENTION_BIAS
    | {"tied": ("tie_word_embeddings", True), "positions": ("max_position_embeddings", 8192)},
    "seed_oss": _GROUPED
    | {
        "kv_heads": ("num_key_value_heads", 8),
        "head_dim": ("head_dim", 128),
        "qkv_bias": ("attention_bias", True),
        "out_bias": ("attention_out_bias", False),
        "ff_bias": ("mlp_bias", False),
        "positions": ("max_position_embeddings", 524288),
    },
    "ministral": _GROUPED
    | {
        "kv_heads": ("num_key_value_heads", 8),
        "head_dim": ("head_dim", REQUIRED),  # the class has none, and its model asks for it
        "positions": ("max_position_embeddings", 131072),
    },
}

_MIXED = _GROUPED | {
    "experts": ("num_experts", REQUIRED),
    "experts_per_token": ("num_experts_per_tok", REQUIRED),
    "expert_ff": ("moe_intermediate_size", REQUIRED),
}
KEYS |= {
    "qwen3_moe": _MIXED
    | _ATTENTION_BIAS
    | {
        "kv_heads": ("num_key_value_heads", 4),
        "positions": ("max_position_embeddings", 32768),
    },
    "mixtral": _MIXED
    | {
        "experts": ("num_local_experts", REQUIRED),
        "expert_ff": ("intermediate_size", REQUIRED),
        "kv_heads": ("num_key_value_heads", 8),
        "positions": ("max_position_embeddings", 131072),
    },
    # Its norms are as wide as the model, so that its heads have no width of their own.
    "olmoe": {field: key for field, key in _MIXED.items() if field != "head_dim"}
    | _ATTENTION_BIAS
    | {
        "expert_ff": ("intermediate_size", REQUIRED),
        "positions": ("max_position_embeddings", 4096),
    },
    "qwen2_moe": _MIXED
    | {
        "shared_ff": ("shared_expert_intermediate_size", REQUIRED),
        "kv_heads": ("num_key_value_heads", 16),
        "qkv_bias": ("qkv_bias", True),
        "positions": ("max_position_embeddings", 32768),
    },
    "glm4_moe": _MIXED
    | {
        "experts": ("n_routed_experts", REQUIRED),
        "shared_ff": ("n_shared_experts", 1),  # of them; each is as wide as any other expert
        "kv_heads": ("num_key_value_heads", 8),
        "qkv_bias": ("attention_bias", False),
        "qk_norm": ("use_qk_norm", False),
        "positions": ("max_position_embeddings", 131072),
    },
    "gpt_oss": _MIXED
    | {
        "experts": ("num_local_experts", REQUIRED),
        "expert_ff": ("intermediate_size", REQUIRED),
        "kv_heads": ("num_key_value_heads", 8),
        "head_dim": ("head_dim", 64),
        "qkv_bias": ("attention_bias", True),
        "out_bias": ("attention_bias", True),
        "positions": ("max_position_embeddings", 131072),
    },
}

# Of latent attention memlab.model.latent reads the widths; a head has no other.
_LATENT = {field: key for field, key in _MIXED.items() if field != "head_dim"} | _ATTENTION_BIAS
KEYS |= {
    "deepseek_v3": _LATENT
    | {
        "experts": ("n_routed_experts", REQUIRED),
        "shared_ff": ("n_shared_experts", 1),
        "kv_heads": ("num_key_value_heads", 128),
        "positions": ("max_position_embeddings", 4096),
    },
}

KEYS["deepseek_v2"] = KEYS["deepseek_v3"] | {
    "shared_ff": ("n_shared_experts", 2),
    "kv_heads": ("num_key_value_heads", None),
    "positions": ("max_position_embeddings", 2048),
}

KEYS["llama4_text"] = (
    _MIXED
    | _ATTENTION_BIAS
    | {
        "d_ff": ("intermediate_size_mlp", REQUIRED),  # of layers without experts
        "experts": ("num_local_experts", REQUIRED),
        "expert_ff": ("intermediate_size", REQUIRED),
        "shared_ff": ("intermediate_size", REQUIRED),
        "kv_heads": ("num_key_value_heads", 8),
        "head_dim": ("head_dim", 128),
        "positions": ("max_position_embeddings", 131072),
    }
)

# transformers lets a GPT-2 config use the names of the other families, and takes those first.
# Source      PreTrainedConfig.attribute_map: they are set after the family's own
ALIASES = {
    "n_layer": "num_hidden_layers",
    "n_embd": "hidden_size",
    "n_head": "num_attention_heads",
    "n_positions": "max_position_embeddings",
}

# The other names that classes take for a key, of gpt2 and of mixtures: they count first, too.
OTHER_NAMES = {
    "gpt2": ALIASES,
    "qwen3_moe": {"num_experts": "num_local_experts"},
    "mixtral": {"num_local_experts": "num_experts"},
    "gpt_oss": {"num_local_experts": "num_experts"},
    "olmoe": {"num_experts": "num_local_experts"},
    "glm4_moe": {"n_routed_experts": "num_local_experts"},
    "deepseek_v3": {"n_routed_experts": "num_local_experts"},
    "deepseek_v2": {"n_routed_experts": "num_experts"},
}

# Keys that may be null though they have a default: as many key/value heads as query heads then.
NULLABLE = (
    ("qwen2", "num_key_value_heads"),
    ("qwen3", "num_key_value_heads"),
    ("smollm3", "num_key_value_heads"),
    ("seed_oss", "num_key_value_heads"),
    ("seed_oss", "head_dim"),
    ("deepseek_v3", "num_key_value_heads"),
)

# What `layer_types` calls layers by what they see; llama4_text has chunks in place of windows.
KINDS = ("full_attention", "sliding_attention")
CHUNKED = ("full_attention", "chunked_attention")
