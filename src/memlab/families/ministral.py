"""Ministral: a mistral whose config may name layers without the window."""

from . import REQUIRED, effects, like

FAMILY = like(
    "mistral",
    defaults={"head_dim": REQUIRED},  # the class has none, and its model asks for it
    effects=effects(step="layer_types"),
    network=("gemma2", "Ministral"),
    windows="both",
    proven="texts adapters",
    tables={"attentions": ("eager",), "trainer": False},
)
