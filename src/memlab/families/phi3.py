"""Phi 3 and 4: q, k and v in one matrix, gate and up in another; a part of a head may turn."""

from . import effects, like

FAMILY = like(
    "mistral",
    defaults={"kv_heads": None, "positions": 4096},
    # The class has embd_pdrop, the model has none.
    effects=effects(step="partial_rotary_factor resid_pdrop", nothing="embd_pdrop"),
    dropouts={"resid_pdrop": ("residual", 0.0)},
    padding=32000,
    null_head_dim=False,
    flags={"fused_qkv": True, "fused_gate": True},
    network=("phi3", "Phi3"),
    windows="all",
    window=None,
    proven="texts adapters zero3",
    tables={"attentions": ("sdpa", "eager", "windowed", "padded")},
)
