"""gpt-oss: biases, a window in every second layer, a learned score beside those of the tokens."""

from . import effects, like

FAMILY = like(
    "mixtral",
    shape={"qkv_bias": ("attention_bias", True), "out_bias": ("attention_bias", True)},
    defaults={"head_dim": 64},
    effects=effects(
        step="layer_types", nothing="swiglu_alpha swiglu_limit", gone="router_jitter_noise"
    ),
    flags={
        "qkv_bias": True,
        "out_bias": True,
        "expert_bias": True,
        "expert_rows": True,
        "sinks": True,
    },
    modules={"router": "mlp.router.weight"},
    network=("gpt_oss", "GptOss"),
    attentions=("eager",),
    windows="both",
    window=128,
    window_every=2,
    proven="texts adapters expert_parallel pipeline",
    tables={"attentions": ("eager",)},
)
