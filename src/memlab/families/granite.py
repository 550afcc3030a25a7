"""Granite: a llama whose activations are multiplied by numbers."""

from . import effects, like

FAMILY = like(
    "llama",
    effects=effects(
        nothing="embedding_multiplier residual_multiplier attention_multiplier logits_scaling"
    ),
    null_head_dim=False,
    network=("granite", "Granite"),
    scales_logits=True,
    proven="texts adapters zero3",
    tables={"losses": ("plain",), "dropouts": (None, 0.1)},
)
