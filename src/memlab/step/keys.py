"""Keys of a config.json that change no parameter but change the step: what is described of them."""

from __future__ import annotations

from ..model.families import MIXTURES

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

LLAMAS = ("llama", "mistral", "qwen2", "qwen3", "gemma") + MIXTURES
ACTIVATIONS = {"gemma": ("gelu_pytorch_tanh", "gelu")}  # the others': silu
SHARES = {"glm4_moe": 0.5}  # of a head that turns, where a config says nothing
ROTARY = ("default", "linear", "llama3", "yarn", "proportional", "dynamic", "longrope")


def check(family: str, config: Mapping[str, Any]) -> None:
    """Refuse a config that makes a step other than the one described.

    Raises      ValueError that names the key and its value
    """
    if family not in LLAMAS:
        return
    known = ACTIVATIONS.get(family, ("silu", "swish"))
    activation = config.get("hidden_act", known[0])
    if activation not in known:
        raise ValueError(f"hidden_act={activation!r} is not described; known: {', '.join(known)}")
    kind = rope_type(config)
    if family == "glm4_moe" and kind == "proportional":
        raise ValueError("rope_type='proportional' is not described where part of a head turns")


def attention(config: Mapping[str, Any], asked: str | None, usual: str = "sdpa") -> str:
    """The attention that is asked for, else the config's, else transformers' own."""
    told = config.get("attn_implementation") or config.get("_attn_implementation")
    return str(asked or told or usual)


def rope_type(config: Mapping[str, Any]) -> str:
    """How the rotary base is scaled, by any of the keys that configs use.

    Raises      ValueError for a kind that is not described
    """
    rotary = config.get("rope_parameters") or config.get("rope_scaling") or {}
    kind = rotary.get("rope_type") or rotary.get("type") or "default"
    if kind not in ROTARY:
        raise ValueError(f"rope_type={kind!r} is not described; known: {', '.join(ROTARY)}")
    return str(kind)


def rotary_share(family: str, config: Mapping[str, Any]) -> float:
    """The share of a head that positions turn, in families that turn a part of it.

    Source      transformers 5.23: configuration_glm4_moe.py
    """
    rotary = config.get("rope_scaling") or config.get("rope_parameters") or {}
    told = rotary.get("partial_rotary_factor")
    if told is None:
        told = config.get("partial_rotary_factor")
    return SHARES[family] if told is None else float(told)
