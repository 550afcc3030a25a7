"""Gemma 2: four norms in a layer, soft caps, and a window in every second layer."""

from . import effects, like

FAMILY = like(
    "gemma",
    defaults={"kv_heads": 4},
    effects=effects(
        step="sliding_window layer_types hidden_activation attn_logit_softcapping "
        "final_logit_softcapping",
        nothing="hidden_act query_pre_attn_scalar",
    ),
    divides_width=True,
    flags={"block_norms": 4},
    network=("gemma2", "Gemma2"),
    attentions=("eager",),
    activation=("hidden_activation", ("gelu_pytorch_tanh", "gelu")),
    caps={"attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0},
    windows="both",
    window_every=2,
    proven="texts adapters",
    tables={
        "attentions": ("eager",),
        "losses": ("plain",),
        "ties": ("tied",),
        "beside": ("adapters", "fsdp"),
    },
    lora_targets=("q", "v"),
    ia3_targets=("q", "v", "down"),
)
