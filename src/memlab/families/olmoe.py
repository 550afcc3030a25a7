"""OLMoE: norms on all queries and keys at once, so that heads have no width of their own."""

from . import EXPERTS_OF_LAYERS, REQUIRED, effects, like

FAMILY = like(
    "qwen3_moe",
    shape={"expert_ff": ("intermediate_size", REQUIRED), "head_dim": None},
    defaults={"kv_heads": None, "positions": 4096},
    effects=effects(
        only="sliding_window clip_qkv head_dim",
        gone="mlp_only_layers decoder_sparse_step use_sliding_window",
    ),
    padding=1,
    flags={"wide_qk_norm": True},
    network=("experts", "Olmoe"),
    windows="",
    proven="texts adapters expert_parallel pipeline",
    tables={},
    expert_names=EXPERTS_OF_LAYERS,
)
