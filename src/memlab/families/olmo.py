"""OLMo: layer norms without parameters."""

from . import effects, like

FAMILY = like(
    "llama",
    shape={"ff_bias": None},
    effects=effects(step="clip_qkv"),
    padding=1,
    null_head_dim=False,
    flags={"norm": "layernorm", "norm_affine": False},
    network=("olmo", "Olmo"),
    proven="texts zero3",
    tables={},
)
