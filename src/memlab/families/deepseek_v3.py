"""DeepSeek V3: latent attention, experts in groups."""

from . import effects, like

FAMILY = like(
    "glm4_moe",
    shape={"out_bias": ("attention_bias", False), "head_dim": None, "qk_norm": None},
    defaults={"kv_heads": 128, "positions": 4096},
    # The class says the widths of a head once more, as sums and copies of the others.
    effects=effects(
        shape="kv_lora_rank qk_nope_head_dim qk_rope_head_dim v_head_dim q_lora_rank",
        step="rope_interleave",
        nothing="qk_head_dim head_dim",
        only="partial_rotary_factor",
    ),
    nullable=("num_key_value_heads",),
    null_head_dim=True,
    groups=(8, 4),
    first_dense=3,
    network=("deepseek_v3", "DeepseekV3"),
    turned=1.0,
    proven="texts expert_parallel pipeline",
    tables={"heads": ("all",), "ties": ("untied",), "layers": ("1-0",)},
)
