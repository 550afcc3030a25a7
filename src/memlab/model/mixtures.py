"""What a mixture of experts adds to a model's shape, and what it may be.

Letters: X experts in a layer, k of them for each token, M the width of one.
"""

from __future__ import annotations

from ..families import record_of
from ..terms.experts import expert
from ..units import whole
from .values import one_of

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .model import Model

TOPK_METHODS = ("greedy", "group_limited_greedy")  # of deepseek_v2: only the second has groups
COUNTS = ("experts", "experts_per_token", "expert_ff")
# The fields of a model that has no experts.
NONE: dict[str, Any] = {
    "experts": 0,
    "experts_per_token": 0,
    "expert_ff": 0,
    "shared_ff": 0,
    "dense_layers": (),
}


def check(model: Model) -> None:
    """A mixture has all of it, any other family nothing.

    Raises      ValueError, TypeError; both name the field
    """
    for field in COUNTS + ("shared_ff",):
        size = whole(field, getattr(model, field))
        if size and not record_of(model.family).mixture:
            raise ValueError(f"{field}={size}: {model.family} has no experts")
        if not size and field in COUNTS and record_of(model.family).mixture:
            raise ValueError(f"{field}=0; at least 1 is needed in a mixture of experts")
    if model.experts_per_token > model.experts:
        raise ValueError(f"experts_per_token={model.experts_per_token}; X={model.experts} experts")
    if not isinstance(model.dense_layers, tuple):
        kind = type(model.dense_layers).__name__
        raise TypeError(f"dense_layers={model.dense_layers!r} is a {kind}; a tuple is needed")
    if model.dense_layers and not record_of(model.family).mixture:
        raise ValueError(f"dense_layers={model.dense_layers}: all layers of {model.family} are")
    last = -1
    for layer in model.dense_layers:
        if not last < whole("dense_layers", layer) < model.layers:
            raise ValueError(
                f"dense_layers={model.dense_layers}: numbers below L={model.layers}, upwards"
            )
        last = layer


def read(family: str, config: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a mixture that no key says by itself.

    Raises      TypeError or ValueError for a value that no model can be built from
    """
    made: dict[str, Any] = {"dense_layers": dense_layers(family, config, fields["layers"])}
    if record_of(family).groups:
        if not fields["shared_ff"]:
            raise ValueError("n_shared_experts=0; at least 1 is needed")
        made["shared_ff"] = fields["shared_ff"] * fields["expert_ff"]
        _groups(family, config, fields["experts"])
    return made


def groups(family: str, config: Mapping[str, Any]) -> tuple[int, int]:
    """Groups of experts in a layer, and how many of them a token may choose from."""
    usual = record_of(family).groups
    assert usual is not None  # who asks has groups
    if family == "deepseek_v2" and config.get("topk_method", TOPK_METHODS[0]) == TOPK_METHODS[0]:
        return usual
    return config.get("n_group", usual[0]), config.get("topk_group", usual[1])


def _groups(family: str, config: Mapping[str, Any], experts: int) -> None:
    """Two experts of each group are looked at, so that it has to have them; one of deepseek_v2."""
    least = 2
    if family == "deepseek_v2":
        least = 1
        method = config.get("topk_method", TOPK_METHODS[0])
        one_of("topk_method", str(method), TOPK_METHODS)
    count, chosen = groups(family, config)
    for key, value in (("n_group", count), ("topk_group", chosen)):
        if type(value) is not int:
            raise TypeError(f"{key}={value!r} is a {type(value).__name__}; int is needed")
        if value < 1:
            raise ValueError(f"{key}={value}; at least 1 is needed")
    if experts and (experts % count or experts // count < least):
        raise ValueError(
            f"n_group={count} does not divide X={experts} experts into groups of {least}"
        )
    if chosen > count:
        raise ValueError(f"topk_group={chosen}; n_group={count}")


def dense_layers(family: str, config: Mapping[str, Any], layers: int) -> tuple[int, ...]:
    """The layers that a config gives a feed-forward layer of the plain kind.

    Source      transformers 5.23: Qwen3MoeDecoderLayer, Qwen2MoeDecoderLayer, Glm4MoeDecoderLayer
    Raises      TypeError or ValueError for a value that no model can be built from
    """
    known = record_of(family)
    if known.groups:
        first = config.get("first_k_dense_replace", known.first_dense)
        if type(first) is not int:
            raise TypeError(f"first_k_dense_replace={first!r}; int is needed")
        return tuple(range(min(max(first, 0), layers)))
    if "interleave_moe_layer_step" in known.effects:
        return _interleaved(config, layers)
    if "decoder_sparse_step" not in known.effects:
        return ()
    every = config.get("decoder_sparse_step", 1)
    if type(every) is not int:
        kind = type(every).__name__
        raise TypeError(f"decoder_sparse_step={every!r} is a {kind}; int is needed")
    if every < 1:
        raise ValueError(f"decoder_sparse_step={every}; at least 1 is needed")
    told = config.get("mlp_only_layers") or []
    if not isinstance(told, (list, tuple)) or any(type(layer) is not int for layer in told):
        raise TypeError(f"mlp_only_layers={told!r}; a list of whole numbers is needed")
    return tuple(i for i in range(layers) if i in told or (i + 1) % every)


def _interleaved(config: Mapping[str, Any], layers: int) -> tuple[int, ...]:
    """Layers that no list of those with experts names; without a list every so many-th has them.

    Source      transformers 5.23: Llama4TextConfig
    """
    every, told = config.get("interleave_moe_layer_step", 1), config.get("moe_layers")
    if type(every) is not int:
        kind = type(every).__name__
        raise TypeError(f"interleave_moe_layer_step={every!r} is a {kind}; int is needed")
    if every < 1:
        raise ValueError(f"interleave_moe_layer_step={every}; at least 1 is needed")
    if told is None:
        told = range(every - 1, layers, every)
    elif not isinstance(told, (list, tuple)) or any(type(layer) is not int for layer in told):
        raise TypeError(f"moe_layers={told!r}; a list of whole numbers is needed")
    return tuple(i for i in range(layers) if i not in told)


def asleep(model: Model) -> int:
    """Parameters of the experts that one token is not sent to.

    Formula     mixture layers · (X − k) · (3 · D · M, and with biases 2 · M + D)
    """
    idle = model.mixture_layers * (model.experts - model.experts_per_token)
    one = expert(model.d_model, expert_ff=model.expert_ff, bias=model.expert_bias)
    return idle * one


def settings(model: Model) -> dict[str, Any]:
    """Keys of a config that say which layers have no experts, and how many are shared.

    Raises      ValueError for layers that no config of the family says
    """
    known = record_of(model.family)
    if known.groups:
        first = len(model.dense_layers)
        if model.dense_layers != tuple(range(first)) or model.shared_ff % model.expert_ff:
            raise ValueError(f"dense_layers={model.dense_layers}: no config of {model.family}")
        shared = model.shared_ff // model.expert_ff
        return {"first_k_dense_replace": first, "n_shared_experts": shared}
    if "interleave_moe_layer_step" in known.effects:
        if model.shared_ff != model.expert_ff:
            raise ValueError(f"shared_ff={model.shared_ff}: no config of {model.family}")
        return {"moe_layers": [i for i in range(model.layers) if i not in model.dense_layers]}
    if "decoder_sparse_step" not in known.effects:
        return {}
    return {"mlp_only_layers": list(model.dense_layers), "decoder_sparse_step": 1}
