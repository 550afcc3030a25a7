"""Seed-OSS: biases of queries, keys and values, and dropout of the residual stream."""

from . import effects, like

FAMILY = like(
    "llama",
    shape={"out_bias": ("attention_out_bias", False)},
    defaults={"kv_heads": 8, "head_dim": 128, "qkv_bias": True, "positions": 524288},
    effects=effects(step="residual_dropout"),
    nullable=("num_key_value_heads", "head_dim"),
    dropouts={"attention_dropout": ("attention", 0.1), "residual_dropout": ("residual", 0.1)},
    padding=1,
    flags={"qkv_bias": True},
    network=("seed_oss", "SeedOss"),
    proven="texts adapters zero3",
    tables={"dropouts": (None, 0.0)},
)
