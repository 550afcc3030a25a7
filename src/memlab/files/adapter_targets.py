"""Which of a model's linear layers an adapter_config.json names, by the names peft gives them.

Source      peft 0.21, tuners/tuners_utils.py: check_target_module_exists; utils/other.py:
            get_pattern_key
"""

from __future__ import annotations

import re

from ..model import Model
from ..model.module_names import end_names, layers_name, module_names
from ..terms.lora import linear_layers

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

LONGEST = 200  # characters of a pattern
# Of a mixture: what layers with experts have, and what those without have in their place.
MIXED, DENSE = ("experts_", "router", "shared_"), ("gate", "up", "down")


def check_names(said: Mapping[str, Any]) -> None:
    """Refuse names that are no text, and patterns that are too long to be asked.

    Raises      TypeError, ValueError
    """
    names = [*listed(said, "modules_to_save"), *listed(said, "layers_pattern")]
    names += said.get("rank_pattern") or {}
    fields = ("target_modules", "exclude_modules", "feedforward_modules", "target_parameters")
    for field in fields:
        value = said.get(field)
        names += [value] if isinstance(value, str) else listed(said, field)
    for name in names:
        if len(name) > LONGEST:
            raise ValueError(f"{name[:40]!r}... has {len(name):,} characters; at most {LONGEST}")


def listed(said: Mapping[str, Any], field: str) -> list[str]:
    """A field that holds one name or a list of them."""
    value = said.get(field) or []
    value = [value] if isinstance(value, str) else value
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise TypeError(f"{field}={value!r}; a list of names is needed")
    return value


def paths(model: Model, name: str) -> list[str]:
    """The full name of a matrix's module in each layer that has one."""
    inside = module_names(model, (name,))[name]
    layers: Iterable[int] = range(model.layers)
    if name.startswith(MIXED):
        layers = [layer for layer in layers if layer not in model.dense_layers]
    elif model.experts and name in DENSE:
        layers = model.dense_layers
    return [f"{layers_name(model)}.{layer}.{inside}" for layer in layers]


def targets(
    said: Mapping[str, Any], model: Model, usual: Mapping[str, tuple[str, ...]]
) -> list[str]:
    """The matrices of Model.tensors() that have an adapter, in every layer.

    usual       peft's own targets of each family, where none are said
    Raises      ValueError for names that mean nothing here, and for some of the layers alone
    """
    if model.latent is not None:
        raise ValueError(f"adapters are not described for {model.family}")
    known = list(linear_layers(model))
    told = said.get("target_modules")
    if told is None:
        if model.family not in usual:
            raise ValueError(f"target_modules is missing, and peft has none for {model.family}")
        told = list(module_names(model, usual[model.family]).values())
    if isinstance(told, str) and told.lower() == "all-linear":
        if model.embed_dim != model.d_model:
            raise ValueError("target_modules='all-linear' beside projections of the embedding")
        told = [path for name in known for path in paths(model, name)]
    said = {**said, "target_modules": told}
    for what, path in end_names(model).items():
        if _matches(said, path):
            raise ValueError(f"target_modules={told!r} names the {what}: no adapter of it is known")
    found = []
    for name in known:
        hits = [_matches(said, path) for path in paths(model, name)]
        if any(hits) and not all(hits):
            raise ValueError(
                f"{name} has adapters in {sum(hits)} of {len(hits)} layers; described are "
                "adapters in every layer"
            )
        found += [name] if all(hits) else []
    if not found:
        raise ValueError(f"target_modules={told!r} names no linear layer of this {model.family}")
    return found


def _matches(said: Mapping[str, Any], path: str) -> bool:
    """Whether peft puts an adapter beside this module."""
    without = said.get("exclude_modules")
    if isinstance(without, str) and without:
        if full(without, path):
            return False
    elif any(ends(path, name) for name in listed(said, "exclude_modules")):
        return False
    if any(full(rf"(.*\.)?({m})(\..*)?", path) for m in listed(said, "modules_to_save")):
        return False
    told = said["target_modules"]
    if isinstance(told, str):
        return full(told, path)
    if path in told:
        return True
    return any(ends(path, name) for name in told) and _in_layers(said, path)


def _in_layers(said: Mapping[str, Any], path: str) -> bool:
    layers = said.get("layers_to_transform")
    if layers is None or layers == []:
        return True
    wanted = layers if isinstance(layers, list) else [layers]
    patterns = listed(said, "layers_pattern") or [r"[^.]*"]
    for pattern in patterns:
        match = re.match(rf"(?:^|.*?\.){pattern}\.(?P<idx>\d+)\.", path)
        if match:
            return int(match["idx"]) in wanted
    return False


def ends(path: str, name: str) -> bool:
    """Whether a name is the last part of a path, or all of it."""
    return path == name or path.endswith(f".{name}")


def full(pattern: str, path: str) -> bool:
    """Whether a pattern is all of a path.

    Raises      ValueError for a pattern that is none
    """
    try:
        return re.fullmatch(pattern, path) is not None
    except re.error as error:
        raise ValueError(f"{pattern!r} is no regular expression: {error}") from None
