"""The keys of a config.json, family by family: what each of them changes, if it may be changed.

    shape       sets parameters: a field of Model
    step        changes a step or a call, not the parameters, and is described
    nothing     changes no byte of either, whatever it says
    only        described for these values alone; any other is refused, by name
    other       no key of the family's class: transformers keeps it, and nothing reads it

tools/config_fields.py walks through every key of each class, changes it on a small real
model and compares: parameters, a step, a prompt, one more token. Long, because no key is left out.

Source      transformers 5.23: models/*/configuration_*.py, configuration_utils.py
"""

from __future__ import annotations

from . import latent
from .shape_keys import KEYS, OTHER_NAMES

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

SHAPE, STEP, NOTHING, ONLY, OTHER = "shape", "step", "nothing", "only", "other"

# Keys of every family. A key with a remedy is described for the values before it.
_ALL = {
    "model_type": SHAPE,
    "dtype": STEP,
    "torch_dtype": STEP,
    "attn_implementation": STEP,
    "_attn_implementation": STEP,
    # The step is without a cache, as transformers' Trainer runs it, and a call is with one.
    "use_cache": NOTHING,
    "transformers_version": NOTHING,
    "architectures": NOTHING,
    "chunk_size_feed_forward": NOTHING,
    "id2label": NOTHING,
    "label2id": NOTHING,
    "num_labels": NOTHING,
    "problem_type": NOTHING,
    "initializer_range": NOTHING,
    "bos_token_id": NOTHING,
    "eos_token_id": NOTHING,
    "pad_token_id": NOTHING,
    "_name_or_path": NOTHING,
    "is_decoder": NOTHING,
    "pretraining_tp": NOTHING,
    "quantization_config": ONLY,
    "gradient_checkpointing": STEP,
    "is_encoder_decoder": ONLY,
    "add_cross_attention": ONLY,
    "return_dict": ONLY,
    "use_return_dict": ONLY,
    "output_hidden_states": ONLY,
    "output_attentions": ONLY,
    "per_layer_config": ONLY,
}
_ROTARY = {
    "rope_parameters": STEP,
    "rope_scaling": STEP,
    "rope_theta": NOTHING,
    "original_max_position_embeddings": STEP,
    "partial_rotary_factor": ONLY,
}
_LLAMA = _ROTARY | {
    "hidden_act": STEP,
    "attention_dropout": STEP,
    "rms_norm_eps": NOTHING,
    "sliding_window": ONLY,
    "layer_types": ONLY,
}
_WINDOWS = dict.fromkeys(
    ("use_sliding_window", "sliding_window", "max_window_layers", "layer_types"), STEP
)
_GEMMA2 = (
    _LLAMA
    | dict.fromkeys(("sliding_window", "layer_types", "hidden_activation"), STEP)
    | dict.fromkeys(("attn_logit_softcapping", "final_logit_softcapping"), STEP)
    | {"hidden_act": NOTHING, "query_pre_attn_scalar": NOTHING}
    | {"use_bidirectional_attention": ONLY}
)
_NO_WINDOW = {"sliding_window": ONLY, "layer_types": ONLY}

_OWN = {
    "gpt2": _NO_WINDOW
    | {
        "activation_function": STEP,
        "resid_pdrop": STEP,
        "embd_pdrop": STEP,
        "attn_pdrop": STEP,
        "layer_norm_epsilon": NOTHING,
        "summary_type": NOTHING,
        "summary_use_proj": NOTHING,
        "summary_activation": NOTHING,
        "summary_proj_to_labels": NOTHING,
        "summary_first_dropout": NOTHING,
        "scale_attn_weights": NOTHING,
        "scale_attn_by_inverse_layer_idx": NOTHING,
        "reorder_and_upcast_attn": ONLY,
        "n_ctx": NOTHING,
    },
    "llama": _LLAMA,
    "mistral": _LLAMA | {"sliding_window": STEP},
    "qwen2": _LLAMA | _WINDOWS,
    "qwen3": _LLAMA | _WINDOWS,
    "gemma": _LLAMA | {"hidden_activation": NOTHING, "use_bidirectional_attention": ONLY},
    "opt": _NO_WINDOW
    | {
        "activation_function": STEP,
        "dropout": STEP,
        "attention_dropout": STEP,
        "activation_dropout": NOTHING,  # of old configs; the model has none
        "layerdrop": ONLY,
        "do_layer_norm_before": STEP,
        "_remove_final_layer_norm": SHAPE,
        "init_std": NOTHING,
    },
    "gpt_neox": _ROTARY
    | _NO_WINDOW
    | {
        "hidden_act": STEP,
        "attention_dropout": STEP,
        "hidden_dropout": STEP,
        "classifier_dropout": NOTHING,
        "layer_norm_eps": NOTHING,
        "use_parallel_residual": STEP,
        "rotary_pct": STEP,
        "rotary_emb_base": NOTHING,
        "partial_rotary_factor": STEP,
        "head_dim": ONLY,
    },
    "phi3": _LLAMA
    | {
        "sliding_window": STEP,
        "partial_rotary_factor": STEP,
        "resid_pdrop": STEP,
        "embd_pdrop": NOTHING,  # the class has it, the model has none
    },
    "olmo": _LLAMA | {"clip_qkv": STEP},
    "olmo2": _LLAMA,
    "smollm3": _LLAMA
    | dict.fromkeys(("use_sliding_window", "sliding_window", "layer_types"), STEP)
    | dict.fromkeys(("no_rope_layers", "no_rope_layer_interval"), STEP),
    "starcoder2": _LLAMA
    | {
        "sliding_window": STEP,
        "norm_epsilon": NOTHING,
        "residual_dropout": STEP,
        "embedding_dropout": STEP,
    },
    "glm4": _LLAMA | {"partial_rotary_factor": STEP},
    "gemma2": _GEMMA2,
    "gemma3_text": _GEMMA2
    | {
        "sliding_window_pattern": STEP,
        "_sliding_window_pattern": NOTHING,
        "rope_local_base_freq": NOTHING,
        "attn_logit_softcapping": NOTHING,  # the class has it, the model does not ask
    },
    "cohere2": _LLAMA
    | dict.fromkeys(("sliding_window", "layer_types", "sliding_window_pattern"), STEP)
    | {"layer_norm_eps": NOTHING, "logit_scale": NOTHING},
    "seed_oss": _LLAMA | {"residual_dropout": STEP},
    "ministral": _LLAMA | dict.fromkeys(("sliding_window", "layer_types"), STEP),
    # Numbers that activations are multiplied by, whatever they are.
    "granite": _LLAMA
    | dict.fromkeys(("embedding_multiplier", "residual_multiplier"), NOTHING)
    | dict.fromkeys(("attention_multiplier", "logits_scaling"), NOTHING),
}

# Families whose class adds the router's own loss where its logits are asked for.
BALANCED = ("mixtral", "qwen2_moe", "qwen3_moe", "olmoe", "gpt_oss")
_MIXED = _LLAMA | {
    "norm_topk_prob": STEP,
    "output_router_logits": ONLY,
    "router_aux_loss_coef": NOTHING,  # a number by which the router's loss is weighed
    "experts_implementation": ONLY,
    "_experts_implementation": ONLY,
}
_GROUPS = {
    "n_group": STEP,
    "topk_group": STEP,
    "first_k_dense_replace": SHAPE,
    "routed_scaling_factor": NOTHING,
    "num_mtp_layers": NOTHING,  # of which the class builds none
    "num_nextn_predict_layers": NOTHING,
}
# Their class says the widths of a head once more, as sums and copies of the others.
_LATENT = dict.fromkeys(latent.KEYS.values(), SHAPE) | dict.fromkeys(
    ("qk_head_dim", "head_dim"), NOTHING
)
_SOME_DENSE = {"mlp_only_layers": SHAPE, "decoder_sparse_step": SHAPE}
_OWN |= {
    "qwen3_moe": _MIXED | _SOME_DENSE | {"use_sliding_window": STEP, "sliding_window": STEP},
    "mixtral": _MIXED | {"sliding_window": STEP, "router_jitter_noise": ONLY},
    "olmoe": _MIXED | {"clip_qkv": ONLY, "head_dim": ONLY},
    "qwen2_moe": _MIXED | _SOME_DENSE | _WINDOWS,
    "gpt_oss": _MIXED
    | {"sliding_window": STEP, "layer_types": STEP, "swiglu_alpha": NOTHING}
    | {"swiglu_limit": NOTHING},
    "glm4_moe": _MIXED | _GROUPS | {"partial_rotary_factor": STEP},
    "deepseek_v3": _MIXED | _GROUPS | _LATENT | {"rope_interleave": STEP},
}
_OWN["deepseek_v2"] = (
    _MIXED | _GROUPS | _LATENT | {"topk_method": STEP, "norm_topk_prob": NOTHING, "mlp_bias": ONLY}
)
_OWN["llama4_text"] = (
    _MIXED
    | dict.fromkeys(("interleave_moe_layer_step", "moe_layers"), SHAPE)
    | dict.fromkeys(("attention_chunk_size", "layer_types"), STEP)
    | dict.fromkeys(("no_rope_layers", "no_rope_layer_interval", "use_qk_norm"), STEP)
    | {"attn_temperature_tuning": STEP, "floor_scale": NOTHING, "attn_scale": NOTHING}
    | {"router_jitter_noise": NOTHING}  # the class has it, the model does not ask
)
for _name in BALANCED:
    _OWN[_name]["output_router_logits"] = STEP
for _name in ("mixtral", "gpt_oss", "llama4_text"):  # whose weights of experts always add to one
    del _OWN[_name]["norm_topk_prob"]

# The values that a key of kind ONLY may have, and what would be right instead.
HARMLESS: dict[str, tuple[tuple[Any, ...], str]] = {
    "quantization_config": (
        (None,),
        "take the config of the model that was quantized",
    ),
    "is_encoder_decoder": ((False,), "memlab has decoders"),
    "add_cross_attention": ((False,), "makes an encoder-decoder; memlab has decoders"),
    "return_dict": ((True,), "a step reads the loss by its name: true"),
    "use_return_dict": ((), "transformers sets it itself; leave it out"),
    "output_hidden_states": ((False, None), "keeps every layer's output; known: false"),
    "output_attentions": ((False, None), "keeps every layer's scores; known: false"),
    "per_layer_config": ((None,), "layers of different shapes are not described"),
    "partial_rotary_factor": ((None, 1, 1.0), "known: 1, the whole head"),
    "sliding_window": ((None,), "this family has none, but its cache would be cut; known: null"),
    "layer_types": ((None,), "this family has layers of one kind; known: null"),
    "reorder_and_upcast_attn": ((False,), "known: False"),
    "use_bidirectional_attention": ((False, None), "known: false"),
    "layerdrop": ((0, 0.0), "layers would be skipped at random; known: 0"),
    "output_router_logits": ((False,), "this class makes no loss of them; known: false"),
    "experts_implementation": ((None, "grouped_mm"), "known: grouped_mm"),
    "_experts_implementation": ((None, "grouped_mm"), "known: grouped_mm"),
    "router_jitter_noise": ((0, 0.0), "multiplies what a router reads by noise; known: 0"),
    "mlp_bias": ((False,), "biases of shared experts are not described; known: false"),
    "clip_qkv": ((None,), "cuts queries, keys and values in place; known: null"),
    "head_dim": ((None,), "this family's is hidden_size / num_attention_heads; leave it out"),
}


def kinds(family: str) -> dict[str, str]:
    """Every key that the family knows, with its kind."""
    made = _ALL | {key: SHAPE for key, _ in KEYS[family].values()}
    made |= dict.fromkeys(OTHER_NAMES.get(family, {}).values(), SHAPE)
    own = {key: kind for key, kind in _OWN[family].items() if made.get(key) != SHAPE}
    return made | own


def used(family: str, config: Mapping[str, Any]) -> dict[str, list[str]]:
    """The keys of a config by what becomes of them: read, without effect, not known.

    Returns     "read": shape and step; "no effect": keys that change no byte, or that have the one
                value that is described; "not known": the class has no such key
    """
    told: dict[str, list[str]] = {"read": [], "no effect": [], "not known": []}
    if not config:  # a preset: nanochat's has no config.json at all
        return told
    known = kinds(family)
    for key in config:
        kind = known.get(key, OTHER)
        place = "read" if kind in (SHAPE, STEP) else "not known" if kind == OTHER else "no effect"
        told[place].append(key)
    return told
