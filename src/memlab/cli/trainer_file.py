"""A trainer's own config in the place of flags: as CONFIG, or beside it with --trainer-config FILE.

What the files say becomes the flags of the same command, which are parsed as if they had been
typed; a flag that was typed wins. So nothing about a run is told in two ways.
"""

from __future__ import annotations

import os
import re

from .asked import given, words

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from ..files.trainer_configs.said import Said

FLAG = "trainer_config"
# What refusals call an option beside its own name.
CALLED = {"precision": ("autocast", "recipe"), "fsdp": ("FSDP2",), "recipe": ("bf16.enabled",)}
OF_LAUNCH = "ranks"  # which a file that divides takes in


class FromFiles:
    """Where options of a command are from: for the lines of its answer, and those of a refusal."""

    def __init__(self, said: Said, command: str, paths: list[str]) -> None:
        self.said, self.command, self.paths = said, command, paths

    def lines(self) -> list[str]:
        """What was read, what was taken, and the command that asks the same."""
        return [*self.said.lines, *dict.fromkeys(self.said.notes), f"as: {self.command}"]

    def blamed(self, error: str) -> str:
        """A refusal, with the keys of the files that it is about."""
        keys: dict[str, None] = {}
        for option, of in self.said.of.items():
            names = {option, option.replace("_", "-"), option.partition("_")[2] or option}
            found = [rf"(?<![\w-])(--)?{re.escape(name)}(=| )" for name in names]
            found += [rf"\b{name}\b" for name in CALLED.get(option, ())]
            if any(re.search(pattern, error) for pattern in found):
                keys |= dict.fromkeys(of)
        told = ", ".join(keys) if keys else self.command
        return f"{error}; {', '.join(self.paths)}: {told}"


def from_files(options: Any) -> tuple[list[str], FromFiles] | None:
    """The words of the command without files, and what to tell; None where there are no files.

    Raises      ValueError for what is wrong in the files, and for what the command has no flag for
    """
    typed = vars(options)
    model = typed.get("model")
    if not isinstance(model, str) or FLAG not in typed:
        return None
    if model.rpartition(":")[0].endswith(".py"):  # a function of a file: its command refuses
        return None
    paths = list(typed[FLAG] or ())
    alone = _is_file(model)
    if alone:
        paths.insert(0, model)
    if not paths:
        return None
    import shlex

    from ..files.trainer_configs import read
    from .config_argument import model_of

    asked = {action.dest: value for action, value in given(options) if action.dest != FLAG}
    ranks = asked.get(OF_LAUNCH)
    said = read(paths, asked, model_of, None if alone else model, ranks)
    command = options.of_command.prog.split()[-1]
    if said.model is None:
        instead = f"memlab {command} MODEL --trainer-config {shlex.quote(paths[0])}"
        raise ValueError(f"{', '.join(paths)}: no model is named; say {instead}")
    _inline(said, said.model)
    if "fsdp" in said.options or "ranks" in said.options:
        asked.pop(OF_LAUNCH, None)
    found = [command, said.model, *_typed(options, said, asked)]
    shown = [word for word in found if word != "--json"]
    return found, FromFiles(said, shlex.join(["memlab", *shown]), paths)


def _inline(said: Said, name: str) -> None:
    """A config of DeepSpeed that stands inside another file, as flags."""
    config = said.options.pop("_deepspeed", None)
    if config is None:
        return
    from ..files.deepspeed_config import read
    from .arguments_deepspeed import flags_of
    from .config_argument import model_of

    found = read(config, model_of(name).d_model)
    for option, value in flags_of(found).items():
        said.put(option, value)
    if "recipe" in found and said.options.get("recipe") != "zero":
        said.options["recipe"] = found["recipe"]
    said.notes += found.get("told", [])


def _typed(options: Any, said: Said, asked: dict[str, Any]) -> Iterator[str]:
    known = {action.dest: action for action in options.of_command._actions}
    for option, value in said.options.items():
        if option not in known:
            keys = ", ".join(said.of.get(option, ())) or said.path
            name = options.of_command.prog
            raise ValueError(f"{keys} is --{option.replace('_', '-')}, which {name} does not have")
        yield from words(known[option], value)
    for option, value in asked.items():
        if option != "model":
            yield from words(known[option], value)


def _is_file(model: str) -> bool:
    """Whether CONFIG is a trainer's file; what cannot be read at all is left to others.

    A pipe is not looked into: it can be read once.
    """
    if os.path.isdir(model):
        if not os.path.exists(os.path.join(model, "training_args.bin")):
            return False
    elif not os.path.isfile(model):
        return False
    elif model.lower().endswith((".yaml", ".yml")):
        return True  # no config of a model is YAML
    else:
        from ..files.documents import mapping

        try:
            config = mapping(model)
            if "model_type" in config and "base_model" not in config:  # the usual case
                return False
        except (ValueError, OSError):
            config = {}
        from ..files.trainer_configs import trainer_of

        if trainer_of(config) is not None:
            return True
    from ..files.trainer_configs import pickled

    return pickled(model) is not None
