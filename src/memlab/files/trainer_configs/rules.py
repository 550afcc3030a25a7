"""How one key of a trainer's file is read: as a number, a word, a switch, a list of layers."""

from __future__ import annotations

import re
from os.path import exists

from ...model.hub_names import found
from ...model.module_names import end_names
from ..adapter_targets import check_names
from ..adapter_targets import targets as matched
from ..documents import shown
from ..patterns import Patterns
from .said import OFF

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .said import Rule, Said

# Of transformers' Trainer, and memlab's word; all others are refused by name.
OPTIMIZERS = {
    "adamw_torch": "adamw",
    "adamw_torch_fused": "adamw",
    "adamw_hf": "adamw",
    "adamw_bnb_8bit": "bnb_adamw8bit",
    "adamw_8bit": "bnb_adamw8bit",
    "paged_adamw_8bit": "bnb_paged_adamw8bit",
    "paged_adamw_32bit": "bnb_paged_adamw",
    "paged_adamw": "bnb_paged_adamw",
    "adafactor": "hf_adafactor",
    "sgd": "sgd",
    "adamw_torch_8bit": "adamw8bit",
    "adamw_torch_4bit": "adamw4bit",
}
LESS = "{} keeps less than what is counted here: at most so much"


def counted(option: str) -> Rule:
    """A whole number above 0."""

    def rule(said: Said, key: str, value: Any) -> None:
        said.put(option, whole(value), key)

    return rule


def whole(value: Any, least: int = 1) -> int:
    """A whole number, as YAML, JSON and people write it.

    Raises      ValueError for anything else
    """
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,18}", value):
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{shown(value)}; a whole number of at least {least} is needed")
    return value


def worded(option: str, words: Mapping[Any, Any]) -> Rule:
    """One of these values: what each comes to, None for nothing to say."""

    def rule(said: Said, key: str, value: Any) -> None:
        made = one_of(words, value)
        if made is not None:
            said.put(option, made, key)

    return rule


def one_of(words: Mapping[Any, Any], value: Any) -> Any:
    """What a value comes to, whatever its capitals.

    Raises      ValueError for another value, with those that are known
    """
    asked = value.lower() if isinstance(value, str) else value
    for known, made in words.items():
        if type(known) is type(asked) and known == asked:
            return made
    raise ValueError(f"{shown(value)} is not described; known: {', '.join(map(shown, words))}")


def truth(value: Any) -> bool:
    """A switch, as YAML, JSON and people write it.

    Raises      ValueError for anything else
    """
    asked = value.lower() if isinstance(value, str) else value
    for known, words in ((True, ("true", "yes", "on")), (False, ("false", "no", "off"))):
        if asked is known or asked in words:
            return known
    raise ValueError(f"{shown(value)}; true or false is needed")


def noted(words: str) -> Rule:
    """What is counted without, in whatever way it is on, which is said."""

    def rule(said: Said, key: str, value: Any) -> None:
        if value not in OFF + ([], {}):
            said.note(words)

    return rule


def alone(said: Said, key: str, value: Any) -> None:
    """A number of parts, of which one is described."""
    if value not in (1, -1):
        raise ValueError(f"{shown(value)} is not described; 1 is")


def named(said: Said, key: str, value: Any) -> None:
    """The model: a folder, or the name of a repository, whose preset it is where there is one."""
    if not isinstance(value, str) or not value or len(value) > 500:
        raise ValueError(f"{shown(value)}; a name or a folder is needed")
    repository = None if exists(value) else found(value)
    if said.model is not None or repository is None:
        said.model = said.model or value
        return
    if repository.stored and not repository.stored.startswith("nf4"):
        raise ValueError(repository.refusal(value))
    said.model = repository.preset
    if not repository.exact:
        said.notes.append(f"{key}: {repository.told(value)}")


def optimizer(said: Said, key: str, value: Any) -> None:
    """One of transformers' names; torch's AdamW with its loop."""
    word = str(value).removeprefix("OptimizerNames.").lower()
    said.put("optimizer", one_of(OPTIMIZERS, word), key)
    if OPTIMIZERS[word] == "adamw" and "optimizer" not in said.given:
        said.put("optimizer_impl", "fused" if word.endswith("fused") else "foreach", key)


def targets(said: Said, key: str, names: Any) -> None:
    """Which layers have adapters, as peft matches names or a pattern; all: every linear one."""
    if not isinstance(names, str) and not (
        isinstance(names, list) and all(isinstance(name, str) for name in names)
    ):
        raise ValueError(f"{shown(names)}; a list of names is needed")
    asked = {"target_modules": "all-linear" if names == "all" else names}
    check_names(asked)
    said.put("lora_targets", ",".join(matched(asked, said.shape(), (), Patterns())), key)


def saved(said: Said, key: str, names: Any) -> None:
    """Tables that are trained in full beside adapters."""
    asked = names.split(",") if isinstance(names, str) else names
    if not isinstance(asked, list) or not all(isinstance(name, str) for name in asked):
        raise ValueError(f"{shown(names)}; a list of names is needed")
    if not asked:
        return
    ends = {path.rpartition(".")[2]: name for name, path in end_names(said.shape()).items()}
    said.put("lora_saved", ",".join(one_of(ends, name.strip()) for name in asked), key)
