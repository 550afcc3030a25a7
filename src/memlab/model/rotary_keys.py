"""What a config.json may say of rotary positions: which layers turn, how much, how scaled.

Source      transformers: modeling_rope_utils.py, models/*/configuration_*.py
"""

from __future__ import annotations

from ..families import CHUNKED, KINDS, record_of
from .values import number, of_kind, one_of

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

ONCE = ("default", "linear", "llama3", "yarn", "proportional")  # scaled when the model is built
LONG = ("longrope", "su", "yarn")  # phi3's names of the one scaling that it has
# Kinds of rotary base that scale a share of the head, where one is said.
SCALED = ("linear", "dynamic", "yarn", "longrope", "llama3")
# Kinds that read the width of a head as the config has it, and a family whose class leaves it null.
BY_HEAD, NULL_HEAD = ("dynamic", "yarn", "longrope"), ("mixtral",)

# What a kind of scaling cannot be without (RotaryEmbeddingConfigMixin.validate_rope).
NEEDED = {
    "linear": ("factor",),
    "dynamic": ("factor",),
    "yarn": ("factor",),
    "llama3": ("factor", "low_freq_factor", "high_freq_factor"),
    "longrope": ("short_factor", "long_factor"),
}


def check_chunks(config: Mapping[str, Any]) -> None:
    """Layers that see the tokens of a chunk, and layers that see all."""
    size = config.get("attention_chunk_size", 1)
    of_kind("attention_chunk_size", size, int, "a whole number is needed")
    if size < 1:
        raise ValueError(f"attention_chunk_size={size}; at least 1 is needed")
    told = config.get("layer_types")
    if told is None:
        return
    if not isinstance(told, (list, tuple)):
        raise TypeError(f"layer_types={told!r} is a {type(told).__name__}; a list is needed")
    for kind in told:
        if kind not in CHUNKED:
            raise ValueError(
                f"layer_types has {kind!r}, not described; known: {', '.join(CHUNKED)}"
            )
    if len(told) != config.get("num_hidden_layers", len(told)):
        raise ValueError(f"layer_types names {len(told)} layers, not num_hidden_layers")


def check_turning(config: Mapping[str, Any]) -> None:
    """Which layers turn: a flag for each, or every so many-th that does not."""
    told, interval = config.get("no_rope_layers"), config.get("no_rope_layer_interval", 4)
    of_kind("no_rope_layer_interval", interval, int, "a whole number is needed")
    if interval < 1:
        raise ValueError(f"no_rope_layer_interval={interval}; at least 1 is needed")
    if told is None:
        return
    if not isinstance(told, (list, tuple)):
        raise TypeError(f"no_rope_layers={told!r} is a {type(told).__name__}; a list is needed")
    for flag in told:
        if type(flag) is not int or flag not in (0, 1):
            raise ValueError(f"no_rope_layers has {flag!r}; 1 turns, 0 does not")
    if len(told) != config.get("num_hidden_layers", len(told)):
        raise ValueError(f"no_rope_layers names {len(told)} layers, not num_hidden_layers")


def check_rotary(family: str, config: Mapping[str, Any]) -> None:
    partly = record_of(family).reads("partial_rotary_factor")  # a part of a head may turn
    for key in ("rope_parameters", "rope_scaling"):
        told = config.get(key)
        if told is not None and not isinstance(told, dict):
            kind = type(told).__name__
            raise TypeError(f"{key}={told!r} is a {kind}; an object is needed, or null")
        for name in ("rope_type", "type"):
            named = (told or {}).get(name)
            if named is not None and not isinstance(named, str):
                raise TypeError(f"{key}'s {name}={named!r}; a text is needed")
        share = (told or {}).get("partial_rotary_factor")
        _share(f"{key}'s partial_rotary_factor", share)
        scaled = (told or {}).get("rope_type") or (told or {}).get("type")
        if not partly and scaled in SCALED and share not in (None, 1):
            raise ValueError(f"{key}'s partial_rotary_factor={share}: {family} turns whole heads")
        if family == "gemma3_text":
            _by_kind(key, told or {})
        elif set(KINDS) & set(told or {}):
            raise ValueError(f"{key} by kind of layer is for gemma3_text; {family} has one for all")
        if family == "phi3" and scaled in LONG:
            _factors(config, told or {})
    told = config.get("rope_scaling") or config.get("rope_parameters") or {}  # as transformers has
    scaling = told.get("rope_type") or told.get("type")
    if family in NULL_HEAD and scaling in BY_HEAD and config.get("head_dim") is None:
        raise ValueError(
            f"rope_type={scaling!r} reads head_dim, which is null in a {family} config unless "
            "it is said; say hidden_size / num_attention_heads"
        )
    if family != "phi3":  # it has one kind, which is complete by now
        _whole(told)
    _share("rotary_pct", config.get("rotary_pct"))
    share = config.get("partial_rotary_factor", 1)
    if share is None and family in ("phi3", "glm4"):
        raise TypeError("partial_rotary_factor is null; a number is needed, or leave it out")
    _share("partial_rotary_factor", share)


def _by_kind(key: str, told: Mapping[str, Any]) -> None:
    """Rotary bases of each kind of layer: those that are scaled once, when the model is built."""
    if key == "rope_parameters":
        for kind, inner in told.items():
            if kind not in KINDS:
                raise ValueError(f"{key} has {kind!r}; known for gemma3_text: {', '.join(KINDS)}")
            if inner is not None and not isinstance(inner, dict):
                raise TypeError(f"{key}'s {kind}={inner!r}; an object is needed, or null")
        rows = [inner for inner in told.values() if inner]
    else:
        rows = [told]
    for row in rows:
        scaling = row.get("rope_type") or row.get("type") or "default"
        one_of(f"{key}'s rope_type", scaling, ONCE)
        _whole(row)
        if row.get("partial_rotary_factor") not in (None, 1):
            raise ValueError(f"{key}'s partial_rotary_factor: gemma3_text turns whole heads")


def _whole(told: Mapping[str, Any]) -> None:
    """A scaling with all that its kind needs."""
    kind = told.get("rope_type") or told.get("type")
    for key in NEEDED.get(str(kind), ()):
        if key not in told:
            raise ValueError(f"{key}=None is not described: rope_type={kind!r} needs a value")


def _factors(config: Mapping[str, Any], told: Mapping[str, Any]) -> None:
    """Of longrope: a number for each pair of values that turns, for short texts and for long."""
    width, heads = config.get("hidden_size"), config.get("num_attention_heads")
    if type(width) is not int or type(heads) is not int or heads < 1:
        return  # said by name elsewhere
    share = told.get("partial_rotary_factor", config.get("partial_rotary_factor"))
    pairs = int(width // heads * (1 if share is None else share)) // 2
    for key in ("short_factor", "long_factor"):
        factors = told.get(key)
        if not isinstance(factors, (list, tuple)) or len(factors) != pairs:
            told_as = repr(factors)[:40]
            raise ValueError(f"{key}={told_as}: longrope needs a list of {pairs} numbers")


def _share(key: str, value: Any) -> None:
    """A share of a head: above 0, at most 1."""
    if value is None:
        return
    number(key, value)
    if not 0 < value <= 1:
        raise ValueError(f"{key}={value!r} is not a share above 0 and up to 1")
