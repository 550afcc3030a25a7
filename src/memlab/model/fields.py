"""The keys of a config.json: the kind of each, and the values that are described of some.

tools/config_fields.py walks through every key of each class, changes it on a small real
model and compares: parameters, a step, a prompt, one more token.

Source      transformers: models/*/configuration_*.py, configuration_utils.py
"""

from __future__ import annotations

from ..families import OTHER, SHAPE, STEP, record_of

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

# The values that a key of kind ONLY may have, and what would be right instead.
HARMLESS: dict[str, tuple[tuple[Any, ...], str]] = {
    "quantization_config": (
        (None,),
        "take the config of the model that was quantized",
    ),
    "is_encoder_decoder": ((False,), "memlab has decoders"),
    "add_cross_attention": ((False,), "makes an encoder-decoder; memlab has decoders"),
    "return_dict": ((True,), "a step reads the loss by its name: true"),
    "use_return_dict": ((), "transformers sets it itself; leave it out"),
    "output_hidden_states": ((False, None), "keeps every layer's output; known: false"),
    "output_attentions": ((False, None), "keeps every layer's scores; known: false"),
    "per_layer_config": ((None,), "layers of different shapes are not described"),
    "partial_rotary_factor": ((None, 1, 1.0), "known: 1, the whole head"),
    "sliding_window": ((None,), "this family has none, but its cache would be cut; known: null"),
    "layer_types": ((None,), "this family has layers of one kind; known: null"),
    "reorder_and_upcast_attn": ((False,), "known: False"),
    "use_bidirectional_attention": ((False, None), "known: false"),
    "layerdrop": ((0, 0.0), "layers would be skipped at random; known: 0"),
    "output_router_logits": ((False,), "this class makes no loss of them; known: false"),
    "experts_implementation": ((None, "grouped_mm"), "known: grouped_mm"),
    "_experts_implementation": ((None, "grouped_mm"), "known: grouped_mm"),
    "router_jitter_noise": ((0, 0.0), "multiplies what a router reads by noise; known: 0"),
    "mlp_bias": ((False,), "biases of shared experts are not described; known: false"),
    "clip_qkv": ((None,), "cuts queries, keys and values in place; known: null"),
    "head_dim": ((None,), "this family's is hidden_size / num_attention_heads; leave it out"),
}


def kinds(family: str) -> dict[str, str]:
    """Every key that the family knows, with its kind."""
    known = record_of(family)
    kinds_of = dict(known.effects)
    for key in [key for key, _ in known.shape.values()] + list(known.other_names.values()):
        kinds_of[key] = SHAPE
    return kinds_of


def used(family: str, config: Mapping[str, Any]) -> dict[str, list[str]]:
    """The keys of a config by what becomes of them: read, without effect, not known.

    Returns     "read": shape and step; "no effect": keys that change no byte, or that have the one
                value that is described; "not known": the class has no such key
    """
    told: dict[str, list[str]] = {"read": [], "no effect": [], "not known": []}
    if not config:  # a preset: nanochat's has no config.json at all
        return told
    known = kinds(family)
    for key in config:
        kind = known.get(key, OTHER)
        place = "read" if kind in (SHAPE, STEP) else "not known" if kind == OTHER else "no effect"
        told[place].append(key)
    return told
