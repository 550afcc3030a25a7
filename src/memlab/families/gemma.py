"""Gemma: tied, with wide heads and GELU."""

from . import effects, like

FAMILY = like(
    "llama",
    shape={"ff_bias": None},
    defaults={"kv_heads": 16, "head_dim": 256, "tied": True, "positions": 8192},
    effects=effects(nothing="hidden_activation", only="use_bidirectional_attention"),
    padding=0,
    flags={"tied": True},
    network=("gemma", "Gemma"),
    activation=("hidden_act", ("gelu_pytorch_tanh", "gelu")),
    proven="texts adapters zero3",
    tables={"heads": ("all", "shared", "single"), "beside": ("adapters",)},
    lora_targets=("q", "v"),
    ia3_targets=("q", "v", "down"),
)
