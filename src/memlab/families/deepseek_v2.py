"""DeepSeek V2: latent attention, whose positions turn as complex numbers."""

from . import effects, like

FAMILY = like(
    "deepseek_v3",
    defaults={"kv_heads": None, "shared_ff": 2, "positions": 2048},
    effects=effects(
        step="topk_method", nothing="norm_topk_prob", only="mlp_bias", gone="rope_interleave"
    ),
    other_names={"n_routed_experts": "num_experts"},
    nullable=(),
    groups=(1, 1),
    first_dense=0,
    network=("deepseek_v2", "DeepseekV2"),
    proven="texts expert_parallel pipeline",
    tables={"heads": ("all",), "ties": ("untied",), "layers": ("1-0",)},
)
