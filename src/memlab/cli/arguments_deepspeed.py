"""A ds_config.json in the place of flags: --deepspeed-config FILE."""

from __future__ import annotations

import argparse

from ..model import Model
from ..sharding.deepspeed import LINEAR

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

    from ..run.recipe_choice import Configured

# Flags that say the contrary of a key.
CONTRARY = {"contiguous_gradients": "no_contiguous_gradients", LINEAR: f"no_{LINEAR}"}
READ = "deepspeed_config_read"


def read_flags(options: argparse.Namespace, model: Configured | None) -> None:
    """Put what the file says in the place of flags that were not given, once.

    Raises      ValueError for a flag beside the file that says something else; what read_file
                raises
    """
    path = getattr(options, "deepspeed_config", None)
    if path is None or hasattr(options, READ):
        return
    if not isinstance(model, Model):
        raise ValueError(f"--deepspeed-config {path} is for a model that memlab describes")
    from ..files.deepspeed_config import read_file  # only who has such a file needs it

    setattr(options, READ, True)
    try:
        found = read_file(path, model.d_model)
    except ValueError as error:
        said = str(error)
        raise ValueError(said if said.startswith(path) else f"{path}: {said}") from None
    for words in found.get("told", ()):
        options.told.append(words)
    if found.get("aside"):
        options.told.append(f"{path}: no bearing on memory: {', '.join(found['aside'])}")
    for name, value in flags_of(found).items():
        _put(options, name, value, path)
    named = options.recipe or options.precision
    if "recipe" in found and named not in (None, found["recipe"]):
        raise ValueError(f"{named!r} beside {path}, whose bf16.enabled says {found['recipe']!r}")
    if "recipe" not in found and named is None:
        raise ValueError(
            f"{path} leaves bf16.enabled to TrainingArguments: say --recipe zero, which is "
            "bf16=True, or --recipe fp32"
        )
    if named is None:
        options.recipe = found["recipe"]


def flags_of(found: dict[str, Any]) -> dict[str, Any]:
    """What memlab.files.deepspeed_config.read found, as options, the recipe apart."""
    devices = dict(found["devices"])
    said: dict[str, Any] = {}
    if devices.pop("library", None):
        said["deepspeed"] = True
    for field, flag in CONTRARY.items():
        if devices.pop(field, True) is False:
            said[flag] = True
    if devices.get("overlap_comm") is False:
        del devices["overlap_comm"]
    said |= devices | found["run"]
    return said | {name: found[name] for name in ("optimizer",) if name in found}


def _put(options: argparse.Namespace, name: str, value: object, path: str) -> None:
    given = getattr(options, name)
    if given not in (None, value):
        flag = name.replace("_", "-")
        raise ValueError(f"--{flag} {given} beside {path}, which says {value}; give one")
    if value is not None:
        setattr(options, name, value)
