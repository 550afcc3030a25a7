"""SmolLM 3: every fourth layer turns nothing."""

from . import effects, like

FAMILY = like(
    "llama",
    defaults={"kv_heads": 4, "tied": True, "positions": 32768},
    effects=effects(
        step="sliding_window layer_types use_sliding_window no_rope_layers no_rope_layer_interval"
    ),
    nullable=("num_key_value_heads",),
    padding=128004,
    null_head_dim=False,
    flags={"tied": True},
    network=("smollm3", "SmolLM3"),
    windows="some",
    window=None,
    proven="texts adapters zero3",
    tables={"ties": ("tied",), "layers": ("0-1", "0-0")},
)
