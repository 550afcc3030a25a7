"""Qwen 3 with experts."""

from . import EXPERTS_OF_LAYERS, REQUIRED, effects, like

FAMILY = like(
    "mixtral",
    shape={
        "experts": ("num_experts", REQUIRED),
        "expert_ff": ("moe_intermediate_size", REQUIRED),
        "qkv_bias": ("attention_bias", False),
        "out_bias": ("attention_bias", False),
    },
    defaults={"kv_heads": 4, "positions": 32768},
    effects=effects(
        shape="mlp_only_layers decoder_sparse_step",
        step="norm_topk_prob use_sliding_window",
        gone="router_jitter_noise",
    ),
    other_names={"num_experts": "num_local_experts"},
    null_head_dim=False,
    flags={"qk_norm": True},
    network=("experts", "Qwen3Moe"),
    windows="asked",
    window=4096,
    proven="texts adapters expert_parallel tensor_parallel pipeline",
    tables={},
    expert_names=EXPERTS_OF_LAYERS,
)
