"""StarCoder 2: layer norms, biases, no gate."""

from . import effects, like

FAMILY = like(
    "mistral",
    shape={
        "qkv_bias": ("use_bias", True),
        "out_bias": ("use_bias", True),
        "ff_bias": ("use_bias", True),
    },
    defaults={"kv_heads": 2, "tied": True, "positions": 4096},
    effects=effects(step="residual_dropout embedding_dropout", nothing="norm_epsilon"),
    dropouts={"residual_dropout": ("residual", 0.0), "embedding_dropout": ("embedding", 0.0)},
    null_head_dim=False,
    flags={
        "tied": True,
        "gated": False,
        "norm": "layernorm",
        "qkv_bias": True,
        "out_bias": True,
        "ff_bias": True,
    },
    modules={"up": "mlp.c_fc", "down": "mlp.c_proj"},
    network=("starcoder2", "Starcoder2"),
    activation=("hidden_act", ("gelu_pytorch_tanh", "gelu")),
    windows="all",
    window=None,
    proven="texts adapters zero3",
    tables={
        "attentions": ("sdpa", "eager", "windowed", "padded"),
        "ties": ("tied",),
        "dropouts": (None, 0.1),
    },
)
