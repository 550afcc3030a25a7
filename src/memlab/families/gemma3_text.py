"""Gemma 3, its text: norms on queries and keys, and every sixth layer sees all tokens."""

from . import effects, like

FAMILY = like(
    "gemma2",
    defaults={"positions": 131072},
    # The class has attn_logit_softcapping, the model does not ask.
    effects=effects(
        step="sliding_window_pattern",
        nothing="attn_logit_softcapping _sliding_window_pattern rope_local_base_freq",
    ),
    divides_width=True,
    flags={"qk_norm": True},
    network=("gemma3", "Gemma3"),
    caps={"final_logit_softcapping": None},
    window_every=6,
    proven="texts adapters",
    tables={
        "attentions": ("sdpa", "eager", "windowed", "padded"),
        "heads": ("shared", "single"),
        "ties": ("tied",),
        "layers": ("0-1", "0-0"),
    },
    lora_targets=("q", "v"),
    ia3_targets=("q", "v", "down"),
)
