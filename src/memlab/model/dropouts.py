"""Where the class of a family drops values, and with what probability if a config says nothing.

Source      transformers 5.23: models/*/configuration_*.py
"""

from __future__ import annotations

from .families import MIXTURES

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_OF_ATTENTION = {"attention_dropout": ("attention", 0.0)}

# Probabilities of dropout, with the class's own: what they are of, and where a config says nothing.
DROPOUTS: dict[str, dict[str, tuple[str, float]]] = dict.fromkeys(MIXTURES, _OF_ATTENTION) | {
    "gpt2": {
        "attn_pdrop": ("attention", 0.1),
        "resid_pdrop": ("residual", 0.1),
        "embd_pdrop": ("embedding", 0.1),
    },
    "opt": {"attention_dropout": ("attention", 0.0), "dropout": ("residual", 0.1)},
    "gpt_neox": {"attention_dropout": ("attention", 0.0), "hidden_dropout": ("residual", 0.0)},
    "llama": _OF_ATTENTION,
    "mistral": _OF_ATTENTION,
    "qwen2": _OF_ATTENTION,
    "qwen3": _OF_ATTENTION,
    "gemma": _OF_ATTENTION,
    "olmo": _OF_ATTENTION,
    "olmo2": _OF_ATTENTION,
    "smollm3": _OF_ATTENTION,
    "granite": _OF_ATTENTION,
    "ministral": _OF_ATTENTION,
    "seed_oss": {"attention_dropout": ("attention", 0.1), "residual_dropout": ("residual", 0.1)},
    "cohere2": _OF_ATTENTION,
    "gemma3_text": _OF_ATTENTION,
    "gemma2": _OF_ATTENTION,
    "glm4": _OF_ATTENTION,
    "starcoder2": _OF_ATTENTION
    | {"residual_dropout": ("residual", 0.0), "embedding_dropout": ("embedding", 0.0)},
    "phi3": _OF_ATTENTION | {"resid_pdrop": ("residual", 0.0)},
}


def dropouts(family: str, config: Mapping[str, Any], p: float | None) -> dict[str, float]:
    """The probability of dropout of attention, of the residual stream, of the embedding.

    p           one for all that the family has; None: what the config says, else its class
    """
    made = {}
    for key, (part, usual) in DROPOUTS.get(family, {}).items():
        told = config.get(key)
        made[part] = p if p is not None else usual if told is None else told
    return made
