"""GLM 4: four norms in a layer, half of a head turns."""

from . import effects, like

FAMILY = like(
    "mistral",
    shape={"qkv_bias": ("attention_bias", True)},
    defaults={"kv_heads": 2, "head_dim": 128},
    effects=effects(step="partial_rotary_factor", only="sliding_window"),
    padding=151329,
    flags={"block_norms": 4, "qkv_bias": True, "fused_gate": True},
    network=("glm4", "Glm4"),
    turned=0.5,
    windows="",
    proven="texts adapters zero3",
    tables={},
)
