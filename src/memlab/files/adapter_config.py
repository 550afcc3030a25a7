"""Reading an adapter_config.json: what peft's LoraConfig says, as `memlab.Run` takes it.

Every field of LoraConfig is read, is known to change no byte of a step, or is refused by name where
it says another thing than its default. What no such file says is whether peft made the adapters in
fp32 (`Lora.dtype`) and how the base is stored (`Lora.base`).

Source      peft 0.21, tuners/lora/config.py; tuners/tuners_utils.py: check_target_module_exists;
            utils/other.py: get_pattern_key
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from ..model import Model
from ..model.config import load
from ..model.module_names import end_names, layers_name, module_names
from ..terms.lora import Lora, linear_layers

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

READ = (
    *("r", "target_modules", "exclude_modules", "lora_dropout", "rank_pattern", "peft_type"),
    *("layers_to_transform", "layers_pattern", "modules_to_save", "task_type", "use_dora"),
)
# Where values come from, how they begin, how they are scaled: no byte of a step is another one.
NO_BYTE = (
    *("auto_mapping", "peft_version", "base_model_name_or_path", "revision", "inference_mode"),
    *("lora_alpha", "alpha_pattern", "use_rslora", "fan_in_fan_out", "megatron_core"),
    *("loftq_config", "eva_config", "corda_config", "lora_ga_config", "qalora_group_size"),
    *("runtime_config", "ensure_weight_tying", "init_lora_weights"),
)
# What is described of each is its default alone; nothing at all says the same.
REFUSED: dict[str, Any] = {
    "bias": "none",
    "lora_bias": False,
    "use_qalora": False,
    "trainable_token_indices": None,
    "megatron_config": None,
    "velora_config": None,
    "alora_invocation_tokens": None,
    "monteclora_config": None,
    "layer_replication": None,
    "target_parameters": None,
    "use_bdlora": None,
    "arrow_config": None,
    "kasa_config": None,
}
USUAL = {"gpt2": ("qkv",), "gpt_neox": ("qkv",)}  # peft's own targets, where none are said
NAMED = ("llama", "mistral", "gemma", "gemma2", "gemma3_text", "qwen2", "qwen3", "opt")
LONGEST = 200  # characters of a pattern


def read(source: str | os.PathLike[str] | Mapping[str, Any], model: Model) -> Lora:
    """The adapters of an adapter_config.json: a file, the folder it is in, or a dict.

    Raises      ValueError for a field that is not described or not known, with its value, and where
                the layers of a model differ in what stands beside them; FileNotFoundError
    """
    if isinstance(source, (str, os.PathLike)) and os.path.isdir(source):
        source = Path(source) / "adapter_config.json"
    said, _ = load(source)
    _check(said)
    found = _targets(said, model)
    ranks = {name: _rank(said, model, name) for name in found}
    usual = said.get("r", 8)
    return Lora(
        usual,
        tuple(found),
        dropout=said.get("lora_dropout", 0.0),
        ranks=tuple((name, rank) for name, rank in ranks.items() if rank != usual),
        saved=_saved(said, model),
        dora=said.get("use_dora") or False,
    )


def _check(said: Mapping[str, Any]) -> None:
    for field, value in said.items():
        if field not in (*READ, *NO_BYTE, *REFUSED):
            raise ValueError(f"{field} is no field of a LoraConfig that memlab knows")
        if field in REFUSED and value and value != REFUSED[field]:
            raise ValueError(f"{field}={value!r} is not described; known: {REFUSED[field]!r}")
    if said.get("peft_type", "LORA") not in (None, "LORA"):
        raise ValueError(f"peft_type={said['peft_type']!r} is not described; known: LORA")
    if said.get("task_type") not in (None, "CAUSAL_LM"):
        raise ValueError(f"task_type={said['task_type']!r} is not described; known: CAUSAL_LM")
    if said.get("init_lora_weights") == "mica":
        raise ValueError("init_lora_weights='mica' is not described: it freezes one of the two")
    pattern = said.get("rank_pattern") or {}
    if not isinstance(pattern, dict):
        raise TypeError(f"rank_pattern={pattern!r}; an object is needed")
    names = [*pattern, *_listed(said, "modules_to_save"), *_listed(said, "layers_pattern")]
    for field in ("target_modules", "exclude_modules"):
        value = said.get(field)
        names += [value] if isinstance(value, str) else _listed(said, field)
    for name in names:
        if len(name) > LONGEST:
            raise ValueError(f"{name[:40]!r}... has {len(name):,} characters; at most {LONGEST}")


def _listed(said: Mapping[str, Any], field: str) -> list[str]:
    value = said.get(field) or []
    value = [value] if isinstance(value, str) else value
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise TypeError(f"{field}={value!r}; a list of names is needed")
    return value


def _paths(model: Model, name: str) -> list[str]:
    """The full name of a matrix's module in each layer."""
    inside = module_names(model, (name,))[name]
    return [f"{layers_name(model)}.{layer}.{inside}" for layer in range(model.layers)]


def _targets(said: Mapping[str, Any], model: Model) -> list[str]:
    known = list(linear_layers(model))
    told = said.get("target_modules")
    if told is None:
        if model.family not in (*USUAL, *NAMED):
            raise ValueError(f"target_modules is missing, and peft has none for {model.family}")
        told = list(module_names(model, USUAL.get(model.family, ("q", "v"))).values())
    if isinstance(told, str) and told.lower() == "all-linear":
        if model.embed_dim != model.d_model:
            raise ValueError("target_modules='all-linear' beside projections of the embedding")
        told = [path for name in known for path in _paths(model, name)]
    said = {**said, "target_modules": told}
    for what, path in end_names(model).items():
        if _matches(said, path):
            raise ValueError(f"target_modules={told!r} names the {what}: no adapter of it is known")
    found = []
    for name in known:
        hits = [_matches(said, path) for path in _paths(model, name)]
        if any(hits) and not all(hits):
            raise ValueError(
                f"{name} has adapters in {sum(hits)} of {model.layers} layers; described are "
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
        if _full(without, path):
            return False
    elif any(_ends(path, name) for name in _listed(said, "exclude_modules")):
        return False
    if any(_full(rf"(.*\.)?({m})(\..*)?", path) for m in _listed(said, "modules_to_save")):
        return False
    told = said["target_modules"]
    if isinstance(told, str):
        return _full(told, path)
    if path in told:
        return True
    return any(_ends(path, name) for name in told) and _in_layers(said, path)


def _in_layers(said: Mapping[str, Any], path: str) -> bool:
    layers = said.get("layers_to_transform")
    if layers is None or layers == []:
        return True
    wanted = layers if isinstance(layers, list) else [layers]
    patterns = _listed(said, "layers_pattern") or [r"[^.]*"]
    for pattern in patterns:
        match = re.match(rf"(?:^|.*?\.){pattern}\.(?P<idx>\d+)\.", path)
        if match:
            return int(match["idx"]) in wanted
    return False


def _rank(said: Mapping[str, Any], model: Model, name: str) -> int:
    usual, patterns = said.get("r", 8), said.get("rank_pattern") or {}
    ranks = set()
    for path in _paths(model, name):
        keys = [key for key in patterns if _full(rf"(.*\.)?({key})", path)]
        ranks.add(patterns[keys[0]] if keys else usual)
    if len(ranks) > 1:
        raise ValueError(
            f"rank_pattern gives {name} ranks {sorted(ranks)}; one rank in every layer is described"
        )
    (rank,) = ranks
    return rank  # type: ignore[no-any-return]


def _saved(said: Mapping[str, Any], model: Model) -> tuple[str, ...]:
    found, ends = [], end_names(model)
    for module in _listed(said, "modules_to_save"):
        names = [name for name, path in ends.items() if _ends(path, module)]
        if not names:
            known = ", ".join(path.split(".")[-1] for path in ends.values())
            raise ValueError(f"modules_to_save names {module!r}; described are {known}")
        found += names
    return tuple(sorted(set(found)))


def _ends(path: str, name: str) -> bool:
    return path == name or path.endswith(f".{name}")


def _full(pattern: str, path: str) -> bool:
    try:
        return re.fullmatch(pattern, path) is not None
    except re.error as error:
        raise ValueError(f"{pattern!r} is no regular expression: {error}") from None
