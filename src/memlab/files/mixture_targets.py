"""Which parameters of a mixture an adapter_config.json names: experts and routers.

Before transformers 5 every expert was three linear layers. peft takes their names still, all-linear
among them, for the parameters in which all experts of a layer are now: gate and up of an expert lie
in one, whose rank is twice as large.

Source      peft, utils/transformers_weight_conversion.py: _convert_peft_config_moe;
            tuners/tuners_utils.py: _inject_parameters
"""

from __future__ import annotations

from ..adapters.lora import WRAPPED, beside, linear_layers
from ..base.untrusted import brief
from ..families import record_of
from ..model import Model
from ..model.module_names import layers_name, module_names
from .adapter_targets import ends, listed, paths
from .patterns import Patterns

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_ROUTER, _UP, _DOWN = "gate.weight", "gate_up_proj", "down_proj"


def of_today(said: Mapping[str, Any], model: Model, patterns: Patterns) -> dict[str, Any]:
    """The config as peft rewrites it for this model before it looks for anything.

    Raises      ValueError where one of two names that are fused now is missing, as peft does
    """
    made = dict(said)
    names = record_of(model.family).expert_names
    if not names:
        return made
    told = said.get("target_modules")
    modules = _resolved(told, names, model, patterns) if isinstance(told, str) else told or []
    if not isinstance(modules, list):
        return made  # which is refused by its name
    kept, found = [], list(listed(said, "target_parameters"))
    fused = {old: False for old in names if names[old] == _UP}
    for module in modules:
        old = [name for name in names if ends(module, name)] if isinstance(module, str) else []
        if not old:
            kept.append(module)
            continue
        found.append(names[old[0]])
        fused |= {old[0]: True} if old[0] in fused else {}
    if any(fused.values()) and not all(fused.values()):
        with_, without = ([n for n in fused if fused[n] is have] for have in (True, False))
        raise ValueError(
            f"target_modules names {with_[0]} without {without[0]}: both are in {_UP} now, and "
            "peft refuses one alone"
        )
    made |= {"target_modules": kept, "target_parameters": sorted(set(found))}
    if all(fused.values()):
        pattern = rf".*\.{_UP}"
        made["rank_pattern"] = {**(said.get("rank_pattern") or {}), pattern: 2 * said.get("r", 8)}
    return made


def _resolved(told: str, names: Mapping[str, str], model: Model, patterns: Patterns) -> list[str]:
    """The last parts of all names that a pattern, or all-linear, stands for."""
    linear = [path for name in linear_layers(model) for path in paths(model, name)]
    if told.lower() == "all-linear":
        return sorted({path.rsplit(".", 1)[-1] for path in linear} | set(names))
    where = f"{layers_name(model)}.0"
    for whole in ("self_attn", "mlp", "mlp.experts", "self_attn.q_proj.weight"):
        if patterns.full(told, f"{where}.{whole}"):
            raise ValueError(
                f"target_modules={brief(told)} names {whole}, which is no linear layer"
            )
    hits = {path.rsplit(".", 1)[-1] for path in linear if patterns.full(told, path)}
    inside = {old: "mlp" if new == _ROUTER else "mlp.experts" for old, new in names.items()}
    layers = [f"{layers_name(model)}.{layer}" for layer in range(model.layers)]
    hits |= {
        old
        for old in names
        if any(patterns.full(told, f"{at}.{inside[old]}.{old}") for at in layers)
    }
    return sorted(hits) or [told]


def parameters(said: Mapping[str, Any], model: Model) -> list[str]:
    """The matrices of Model.tensors() that `target_parameters` names, in every layer with experts.

    Raises      ValueError for a name of something else, and for some of the layers alone
    """
    told = listed(said, "target_parameters")
    if not told:
        return []
    known = [name for name in beside(model) if name in WRAPPED]
    where = {name: paths(model, name) for name in known}
    for target in told:
        named = [path for name in known for path in where[name] if ends(path, target)]
        if not named or target == "weight":
            own = module_names(model, known).values()
            raise ValueError(
                f"target_parameters names {target!r}; described for {model.family}: "
                f"{', '.join(own) or 'none'}"
            )
    found = []
    for name in known:
        hits = [any(ends(path, target) for target in told) for path in where[name]]
        if any(hits) and not all(hits):
            raise ValueError(
                f"{name} has adapters in {sum(hits)} of {len(hits)} layers; described are adapters "
                "in every layer"
            )
        found += [name] if all(hits) else []
    return found
