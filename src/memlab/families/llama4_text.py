"""Llama 4, its text: chunks in place of windows, layers with experts and without."""

from . import REQUIRED, effects, like

FAMILY = like(
    "mixtral",
    shape={
        "d_ff": ("intermediate_size_mlp", REQUIRED),  # of layers without experts
        "qkv_bias": ("attention_bias", False),
        "out_bias": ("attention_bias", False),
        "shared_ff": ("intermediate_size", REQUIRED),
    },
    defaults={"head_dim": 128},
    # The class has router_jitter_noise, the model does not ask.
    effects=effects(
        shape="interleave_moe_layer_step moe_layers",
        step="layer_types attention_chunk_size no_rope_layers no_rope_layer_interval "
        "use_qk_norm attn_temperature_tuning",
        nothing="floor_scale attn_scale router_jitter_noise",
        only="sliding_window output_router_logits",
    ),
    other_names={},
    flags={"expert_rows": True},
    modules={"router": "feed_forward.router"},
    feed_forward_path="feed_forward",
    network=("llama4", "Llama4"),
    names_body=False,
    grouped_experts=False,
    linear_router=True,
    windows="chunks",
    window=8192,
    proven="texts adapters",
    tables={
        "attentions": ("sdpa", "eager", "windowed", "padded"),
        "losses": ("plain",),
        "heads": ("shared",),
        "ties": ("untied",),
        "layers": ("0-1", "0-0", "2-1"),
    },
    shared_targets=("shared_gate", "shared_up", "shared_down"),
)
