"""Random training steps of mixtures of experts, beside those of tests/real/real_steps.py."""

import random
from typing import Any

from real_steps import Question, random_configs

LATENTS = ("deepseek_v2", "deepseek_v3")
LATER = (*LATENTS, "llama4_text")
MIXTURES = ("qwen3_moe", "mixtral", "olmoe", "qwen2_moe", "glm4_moe", "gpt_oss", *LATER)
# Keys that choose which layers have experts, or nothing in a layer at all.
SOME: dict[str, list[Any]] = {
    "norm_topk_prob": [True, False],
    "decoder_sparse_step": [1, 2],
    "attention_bias": [True, False],
    "qkv_bias": [True, False],
    "use_qk_norm": [True, False],
    "first_k_dense_replace": [0, 1, 2],
    "n_shared_experts": [1, 2],
    "topk_group": [1, 2],
    "partial_rotary_factor": [0.25, 0.5, 1.0],
    "rope_interleave": [True, False],
    "topk_method": ["group_limited_greedy", "greedy"],
    "interleave_moe_layer_step": [1, 2],
    "no_rope_layer_interval": [1, 2],
    "attn_temperature_tuning": [True, False],
}
OF_GROUPS = ("attention_bias", "first_k_dense_replace", "n_shared_experts", "topk_group")
OWN = {
    "qwen3_moe": ("norm_topk_prob", "mlp_only_layers", "decoder_sparse_step", "attention_bias"),
    "mixtral": (),
    "gpt_oss": ("attention_bias",),
    "olmoe": ("norm_topk_prob", "attention_bias"),
    "qwen2_moe": ("norm_topk_prob", "mlp_only_layers", "decoder_sparse_step", "qkv_bias"),
    "glm4_moe": (*OF_GROUPS, "norm_topk_prob", "use_qk_norm", "partial_rotary_factor"),
    "llama4_text": (
        *("attention_bias", "use_qk_norm", "interleave_moe_layer_step"),
        *("no_rope_layer_interval", "attn_temperature_tuning"),
    ),
    "deepseek_v2": (*OF_GROUPS, "topk_method"),
    "deepseek_v3": (*OF_GROUPS, "norm_topk_prob", "rope_interleave"),
}


def random_mixtures(
    n: int,
    seed: int = 0,
    *,
    families: tuple[str, ...] = MIXTURES,
    checkpoints: tuple[str, ...] = ("none", "block"),
    dropouts: tuple[float, ...] = (0.0, 0.0, 0.1),
) -> list[Question]:
    """`n` steps, the same for the same arguments; families take turns."""
    rng = random.Random(f"mixtures {seed}")
    drawn = random_configs(n, seed, families=families, checkpoints=checkpoints, dropouts=dropouts)
    made = [step.replace(config=step.config | experts(rng, step.config)) for step in drawn]
    # It has no other attention.
    return [s.replace(attention="eager") if s.family == "gpt_oss" else s for s in made]


def experts(rng: random.Random, config: dict[str, Any], unit: int = 8) -> dict[str, Any]:
    """Keys of experts beside those of a dense model: how many, how wide, in which layers.

    unit        widths are multiples of it: grouped products ask for rows of whole 16 bytes
    """
    family, layers = config["model_type"], config["num_hidden_layers"]
    heads = config["num_attention_heads"]
    made: dict[str, Any] = {
        "num_key_value_heads": rng.choice([k for k in range(1, heads + 1) if heads % k == 0]),
        "num_experts_per_tok": rng.randint(1, 4),
    }
    if family in ("glm4_moe", *LATENTS):
        made["n_group"] = rng.choice([2, 3])
        made["n_routed_experts"] = made["n_group"] * rng.randint(2, 4)
        made |= {"topk_group": 1}
    else:
        local = family in ("mixtral", "gpt_oss", "llama4_text")
        number = "num_local_experts" if local else "num_experts"
        made[number] = rng.randint(made["num_experts_per_tok"], 9)
    own_width = family in ("qwen3_moe", "qwen2_moe", "glm4_moe", *LATENTS)
    width = "moe_intermediate_size" if own_width else "intermediate_size"
    made[width] = unit * rng.randint(1, 8)
    if family == "qwen2_moe":
        made["shared_expert_intermediate_size"] = unit * rng.randint(1, 8)
    if family in LATENTS:
        made |= latent(rng, heads)
    elif family != "olmoe" and rng.random() < 0.5:
        made["head_dim"] = rng.choice([8, 16, 40])
    some = SOME | {"mlp_only_layers": [[0], list(range(layers)), [layers - 1]]}
    if family == "llama4_text":
        made |= {"intermediate_size_mlp": unit * rng.randint(1, 8)}
        made |= {"head_dim": rng.choice([8, 16]), "attention_chunk_size": rng.choice([7, 200])}
    if family == "gpt_oss":
        made |= {"sliding_window": rng.randint(2, 60)}
    return made | {key: rng.choice(some[key]) for key in OWN[family] if rng.random() < 0.5}


def latent(rng: random.Random, heads: int) -> dict[str, Any]:
    """Widths of latent attention; values are as wide as queries and keys, or not."""
    nope, rope = rng.choice([8, 16, 24]), rng.choice([8, 16])
    return {
        "num_key_value_heads": heads,
        "q_lora_rank": rng.choice([None, 24]),
        "kv_lora_rank": rng.choice([8, 34]),
        "qk_nope_head_dim": nope,
        "qk_rope_head_dim": rope,
        "v_head_dim": rng.choice([8, 16, nope + rope]),
    }
