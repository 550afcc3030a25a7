"""What an adapter_config.json says of adapters other than LoRA: (IA)³, VeRA and prompt tuning.

Source      peft, tuners/ia3/config.py and model.py, tuners/vera/config.py,
            tuners/prompt_tuning/config.py, utils/constants.py
"""

from __future__ import annotations

from ..adapters import Ia3, Prompt, Vera
from ..base.untrusted import brief
from ..families import record_of
from ..model import Model
from .adapter_targets import check_names, listed, paths, targets
from .patterns import Patterns

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

# Fields of every config that change no byte of a step.
EVERYWHERE = (
    *("task_type", "peft_type", "auto_mapping", "peft_version", "base_model_name_or_path"),
    *("revision", "inference_mode"),
)
# Of each kind: what is read, what changes no byte, and what is described at its default alone.
FIELDS: dict[str, tuple[tuple[str, ...], tuple[str, ...], dict[str, Any]]] = {
    "IA3": (
        ("target_modules", "exclude_modules", "feedforward_modules"),
        ("fan_in_fan_out", "init_ia3_weights"),
        {"modules_to_save": None},
    ),
    "VERA": (
        ("target_modules", "r", "vera_dropout", "layers_to_transform", "layers_pattern"),
        ("projection_prng_key", "save_projection", "d_initial", "fan_in_fan_out", "init_weights"),
        {"bias": "none", "modules_to_save": None},
    ),
    "PROMPT_TUNING": (
        ("num_virtual_tokens", "token_dim", "num_transformer_submodules"),
        (
            *("num_attention_heads", "num_layers", "prompt_tuning_init"),
            *("prompt_tuning_init_text", "tokenizer_name_or_path", "tokenizer_kwargs"),
        ),
        {"modules_to_save": None},
    ),
}


def read(kind: Any, said: Mapping[str, Any], model: Model) -> Ia3 | Vera | Prompt:
    """The adapters of a config whose peft_type is this one.

    Raises      ValueError for a kind or a field that is not described or not known, with its value
    """
    if kind not in FIELDS:
        known = ", ".join(["LORA", *FIELDS])
        raise ValueError(f"peft_type={kind!r} is not described; known: {known}")
    _check(kind, said)
    if kind == "PROMPT_TUNING":
        return _prompt(said, model)
    patterns = Patterns()
    if kind == "VERA":
        found = tuple(targets(said, model, record_of(model.family).lora_targets, patterns))
        return Vera(said.get("r", 256), found, dropout=said.get("vera_dropout", 0.0))
    found = tuple(targets(said, model, record_of(model.family).ia3_targets, patterns))
    return Ia3(found, tuple(name for name in found if _before(said, model, name, patterns)))


def _check(kind: str, said: Mapping[str, Any]) -> None:
    fields, same, refused = FIELDS[kind]
    for field, value in said.items():
        if field not in (*fields, *same, *refused, *EVERYWHERE):
            raise ValueError(f"{field} is no field of a config of {kind} that memlab knows")
        if field in refused and value and value != refused[field]:
            raise ValueError(f"{field}={brief(value)} is not described; known: {refused[field]!r}")
    task = said.get("task_type")
    if task != "CAUSAL_LM" and (task is not None or kind == "PROMPT_TUNING"):
        raise ValueError(f"task_type={task!r} is not described; known: CAUSAL_LM")
    check_names(said)


def _before(said: Mapping[str, Any], model: Model, name: str, patterns: Patterns) -> bool:
    """Whether (IA)³ scales the inputs of this layer, in every layer alike.

    Source      peft, tuners/ia3/model.py: _check_target_module_feedforward
    """
    told = said.get("feedforward_modules")
    if told is None:
        if not record_of(model.family).ia3_targets:
            raise ValueError(
                f"feedforward_modules is missing, and peft has none for {model.family}"
            )
        return name == "down"
    if isinstance(told, str):
        hits = [patterns.full(told, path) for path in paths(model, name)]
    else:
        ends = listed(said, "feedforward_modules")
        hits = [any(path.endswith(end) for end in ends) for path in paths(model, name)]
    if any(hits) and not all(hits):
        raise ValueError(
            f"feedforward_modules={brief(told)} names {name} in some of the layers alone"
        )
    return all(hits)


def _prompt(said: Mapping[str, Any], model: Model) -> Prompt:
    for field, known in (("token_dim", model.d_model), ("num_transformer_submodules", 1)):
        if said.get(field) not in (None, known):
            raise ValueError(f"{field}={said[field]!r} is not described; known: {known}")
    if said.get("num_virtual_tokens") is None:
        raise ValueError("num_virtual_tokens is missing: how many does the prompt have?")
    return Prompt(said["num_virtual_tokens"])
