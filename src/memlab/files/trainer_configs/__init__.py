"""Configs of trainers: axolotl's, LLaMA-Factory's, torchtune's, TrainingArguments', accelerate's.

One table a program says what each key comes to among the options of memlab's commands, or that it
has no bearing on memory. A file is known by its keys, not by its name.
"""

from __future__ import annotations

import os

from ..documents import mapping
from ..pickled_arguments import arguments_of
from .accelerate import ACCELERATE
from .axolotl import AXOLOTL
from .llama_factory import LLAMA_FACTORY
from .rules import named
from .said import Said, Trainer
from .settled import settle
from .torchtune import TORCHTUNE
from .training_arguments import TRAINING_ARGUMENTS

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from typing import Any

    from ...model import Model

# In the order in which they are asked: keys of Trainer stand in the files of what is made from it.
TRAINERS = (AXOLOTL, LLAMA_FACTORY, ACCELERATE, TRAINING_ARGUMENTS, TORCHTUNE)
PICKLED = "training_args.bin"


def trainer_of(config: dict[str, Any]) -> Trainer | None:
    """Whose file this is; None: no trainer's."""
    if "architectures" in config or ("model_type" in config and "base_model" not in config):
        return None  # a model's config.json
    for trainer in TRAINERS:
        if all(any(key in config for key in group) for group in trainer.marks):
            model = config.get("model")
            if trainer is not TORCHTUNE or (isinstance(model, dict) and "_component_" in model):
                return trainer
    return None


def pickled(path: str) -> str | None:
    """The training_args.bin that a path means: the file, or that of a folder without a model."""
    if os.path.isdir(path):
        inside = os.path.join(path, PICKLED)
        has_model = os.path.exists(os.path.join(path, "config.json"))
        return inside if os.path.exists(inside) and not has_model else None
    if not os.path.isfile(path):
        return None
    with open(path, "rb") as file:
        return path if file.read(4) == b"PK\x03\x04" else None


def read(
    paths: Sequence[str],
    given: Collection[str],
    model_of: Callable[[str], Model],
    model: str | None = None,
    ranks: int | None = None,
) -> Said:
    """What these files say together.

    given       options that were typed beside them, and win
    model       as it was typed, where it was; else the files name it
    ranks       as they were typed
    Raises      ValueError that names everything that is wrong in any of them
    """
    said = Said(given, model_of)
    said.model, said.ranks = model, ranks
    for path in paths:
        binary = pickled(path)
        config = _of_binary(said, binary) if binary else mapping(path)
        trainer = TRAINING_ARGUMENTS if binary else trainer_of(config)
        if trainer is None:
            known = ", ".join(each.called.partition(" ")[0] for each in TRAINERS)
            aside = "; DeepSpeed's is --deepspeed-config" * ("zero_optimization" in config)
            raise ValueError(f"{path} is no file of a trainer that is known here: {known}{aside}")
        said.read(path, config, trainer)
    settle(said)
    if said.problems:
        raise ValueError(f"{', '.join(paths)}: {'; '.join(said.problems)}")
    return said


def _of_binary(said: Said, path: str) -> dict[str, Any]:
    """The arguments of a training_args.bin; its folder's model and adapters, where they are."""
    name, config = arguments_of(path)
    words = {"SFTConfig": "sft", "DPOConfig": "dpo", "GRPOConfig": "grpo"}
    kind = name.rpartition(".")[2]
    if kind in words:
        said.facts["loop"] = words[kind]
    elif kind.endswith("Config"):
        said.problem(f"{name} is not described; known: {', '.join(words)}, TrainingArguments")
    folder = os.path.dirname(path) or "."
    if os.path.exists(os.path.join(folder, "config.json")):
        said.model = said.model or folder
    adapters = os.path.join(folder, "adapter_config.json")
    if os.path.exists(adapters):
        said.put("adapter", folder)
        base = mapping(adapters).get("base_model_name_or_path")
        if isinstance(base, str) and base:
            named(said, "base_model_name_or_path", base)
    return config
