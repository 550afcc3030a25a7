"""Command R7B: one layer norm in a layer, attention and feed-forward side by side."""

from . import effects, like

FAMILY = like(
    "olmo",
    defaults={"tied": True, "positions": 8192},
    effects=effects(
        step="sliding_window layer_types sliding_window_pattern",
        nothing="layer_norm_eps logit_scale",
        gone="clip_qkv",
    ),
    padding=0,
    flags={"tied": True, "norm_affine": True, "norm_bias": False, "block_norms": 1},
    network=("cohere2", "Cohere2"),
    scales_logits=True,
    windows="both",
    window_every=4,
    proven="texts adapters",
    tables={
        "attentions": ("sdpa", "eager", "windowed", "padded"),
        "losses": ("plain",),
        "ties": ("tied",),
        "layers": ("0-1", "0-0"),
    },
)
