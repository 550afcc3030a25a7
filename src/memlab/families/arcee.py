"""Arcee (AFM): a llama whose feed-forward layer is the square of a ReLU, without a gate."""

from . import like

FAMILY = like(
    "llama",
    defaults={"positions": 4096},
    divides_width=True,
    flags={"gated": False},
    activation=("hidden_act", ("relu2",)),
    network=("arcee", "Arcee"),
    proven="texts adapters",
)
