"""Keys of a config.json that change no parameter but change the step: what is described of them."""

from __future__ import annotations

from ..families import record_of
from ..formats import bytes_per_value

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ..model import Model

ROTARY = ("default", "linear", "llama3", "yarn", "proportional", "dynamic", "longrope")
GROUPED_IN = ("fp32", "bf16", "fp16")  # formats that experts are multiplied in
ALIGNED = 16  # bytes: a row of what is multiplied in groups begins at a multiple of it


def check(family: str, config: Mapping[str, Any]) -> None:
    """Refuse a config that makes a step other than the one described.

    Raises      ValueError that names the key and its value
    """
    key, known = record_of(family).activation
    if not known:
        return  # its network reads it
    activation = config.get(key, known[0])
    if activation not in known:
        raise ValueError(f"{key}={activation!r} is not described; known: {', '.join(known)}")
    kind = rope_type(config)
    if family == "phi3" and kind not in ("default", "longrope"):
        raise ValueError(f"rope_type={kind!r} is not phi3's; known: default, longrope")


def check_rows(model: Model, dtype: str) -> None:
    """Refuse experts whose matrices torch does not multiply in groups, in this format of weights.

    Source      PyTorch 2.13: aten/src/ATen/native/GroupedMMUtils.h, "strides should be multiple of
                16 bytes". llama4_text multiplies the rows of all its experts as one batch instead
    Raises      ValueError that names the width
    """
    grouped = model.mixture_layers and record_of(model.family).grouped_experts
    if not grouped or dtype not in GROUPED_IN:
        return
    unit = ALIGNED // int(bytes_per_value(dtype))
    for letter, size in (("D", model.d_model), ("M", model.expert_ff)):
        if size % unit:
            raise ValueError(
                f"{letter}={size} in {dtype}: torch multiplies experts in groups, whose rows are a "
                f"multiple of {ALIGNED} bytes; a multiple of {unit} is needed"
            )


def caps(model: Model, key: str) -> bool:
    """Whether scores, or logits, are kept below a number."""
    usual = record_of(model.family).caps
    return key in usual and model.config.get(key, usual[key]) is not None


def scales_logits(model: Model) -> bool:
    """Whether the logits are more than a product with the output head."""
    return record_of(model.family).scales_logits or caps(model, "final_logit_softcapping")


def router_loss(config: Mapping[str, Any]) -> bool:
    """Whether the config asks for the loss of the routers, of a family whose class makes one."""
    return bool(config.get("output_router_logits"))


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
    if config.get("model_type") == "phi3" and kind in ("su", "yarn"):
        return "longrope"  # its names in older configs
    if kind not in ROTARY:
        raise ValueError(f"rope_type={kind!r} is not described; known: {', '.join(ROTARY)}")
    return str(kind)


def rotary_share(family: str, config: Mapping[str, Any]) -> float:
    """The share of a head that positions turn, in families that turn a part of it.

    Source      transformers: configuration_phi3.py, configuration_glm4.py
    """
    rotary = config.get("rope_scaling") or config.get("rope_parameters") or {}
    if rope_type(config) == "proportional":  # turns all of it, much of it by nothing
        return 1.0
    told = rotary.get("partial_rotary_factor")
    if told is None:
        told = config.get("partial_rotary_factor")
    return record_of(family).turned if told is None else float(told)
