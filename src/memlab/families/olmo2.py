"""OLMo 2: norms after attention and feed-forward, and on all queries and keys at once."""

from . import like

FAMILY = like(
    "llama",
    shape={"ff_bias": None},
    padding=1,
    null_head_dim=False,
    flags={"qk_norm": True, "wide_qk_norm": True},
    network=("olmo2", "Olmo2"),
    proven="texts adapters zero3",
    tables={"beside": ("adapters",)},
)
