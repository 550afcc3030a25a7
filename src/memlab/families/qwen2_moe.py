"""Qwen 1.5 and 2 with experts: a shared one beside them, weighed by a gate."""

from . import REQUIRED, effects, like

FAMILY = like(
    "qwen3_moe",
    shape={
        "shared_ff": ("shared_expert_intermediate_size", REQUIRED),
        "qkv_bias": ("qkv_bias", True),
        "out_bias": None,
    },
    defaults={"kv_heads": 16},
    effects=effects(step="layer_types max_window_layers"),
    other_names={},
    flags={"qk_norm": False, "qkv_bias": True, "shared_gated": True},
    network=("qwen2_moe", "Qwen2Moe"),
    windows="some",
    proven="texts adapters expert_parallel tensor_parallel pipeline",
    tables={},
    shared_targets=("shared_gate", "shared_up", "shared_down", "shared_router"),
    shared_whole=True,
)
