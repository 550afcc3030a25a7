"""Which of a model's linear layers an adapter_config.json names, by the names peft gives them.

Source      peft, tuners/tuners_utils.py: check_target_module_exists; utils/other.py:
            get_pattern_key
"""

from __future__ import annotations

import re

from ..adapters.lora import linear_layers
from ..base.untrusted import brief
from ..model import Model
from ..model.module_names import end_names, layers_name, module_names
from .patterns import Patterns

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
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
    """A field that holds one name or a list of them, each once."""
    value = said.get(field) or []
    value = [value] if isinstance(value, str) else value
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise TypeError(f"{field}={brief(value)}; a list of names is needed")
    return list(dict.fromkeys(value))


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
    said: Mapping[str, Any], model: Model, usual: tuple[str, ...], patterns: Patterns
) -> list[str]:
    """The matrices of Model.tensors() that have an adapter, in every layer.

    usual       peft's own targets of the family, where none are said; it has none for some
    Raises      ValueError for names that mean nothing here, and for some of the layers alone
    """
    if model.latent is not None:
        raise ValueError(f"adapters are not described for {model.family}")
    known = list(linear_layers(model))
    told = said.get("target_modules")
    if told is None:
        if not usual:
            raise ValueError(f"target_modules is missing, and peft has none for {model.family}")
        told = list(module_names(model, usual).values())
    if isinstance(told, str) and told.lower() == "all-linear":
        if model.embed_dim != model.d_model:
            raise ValueError("target_modules='all-linear' beside projections of the embedding")
        told = [path for name in known for path in paths(model, name)]
    has_one = _matching({**said, "target_modules": told}, patterns)
    for what, path in end_names(model).items():
        if has_one(path):
            raise ValueError(
                f"target_modules={brief(told)} names the {what}: no adapter of it is known"
            )
    found = []
    for name in known:
        hits = [has_one(path) for path in paths(model, name)]
        if any(hits) and not all(hits):
            raise ValueError(
                f"{name} has adapters in {sum(hits)} of {len(hits)} layers; described are "
                "adapters in every layer"
            )
        found += [name] if all(hits) else []
    if not found:
        raise ValueError(
            f"target_modules={brief(told)} names no linear layer of this {model.family}"
        )
    return found


def _matching(said: Mapping[str, Any], patterns: Patterns) -> Callable[[str], bool]:
    """Whether peft puts an adapter beside a module."""
    told = said["target_modules"]
    excluded = named(said, "exclude_modules", patterns)
    wanted = named(said, "target_modules", patterns)
    saved = listed(said, "modules_to_save")
    whole = () if isinstance(told, str) else {*told}  # which are beyond layers_to_transform
    layers = said.get("layers_to_transform")
    numbers = layers if isinstance(layers, list) else [] if layers is None else [layers]
    if not all(isinstance(number, int) for number in numbers):
        raise TypeError(f"layers_to_transform={brief(layers)}; whole numbers are needed")
    known = {*numbers}
    before = listed(said, "layers_pattern") or [r"[^.]*"]

    def in_layers(path: str) -> bool:
        if layers is None or layers == []:
            return True
        place = re.search(r"\.(\d+)\.", path)
        return place is not None and any(
            patterns.full(pattern, path[: place.start()], r"(?:^|.*?\.)%s")
            for pattern in (before if int(place[1]) in known else ())
        )

    def matches(path: str) -> bool:
        if excluded(path):
            return False
        if any(patterns.full(name, path, r"(.*\.)?(%s)(\..*)?") for name in saved):
            return False
        if isinstance(told, str):
            return wanted(path)
        return path in whole or (wanted(path) and in_layers(path))

    return matches


def named(said: Mapping[str, Any], field: str, patterns: Patterns) -> Callable[[str], bool]:
    """Whether a field names a module: as a pattern for all of its path, or by its last parts."""
    value = said.get(field)
    if isinstance(value, str) and value:
        return lambda path: patterns.full(value, path)
    names = set(listed(said, field))
    return lambda path: any(part in names for part in _last_parts(path))


def _last_parts(path: str) -> list[str]:
    parts = path.split(".")
    return [".".join(parts[i:]) for i in range(len(parts))]


def ends(path: str, name: str) -> bool:
    """Whether a name is the last part of a path, or all of it."""
    return path == name or path.endswith(f".{name}")
