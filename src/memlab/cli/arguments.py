"""What people give on the command line, as values: a model, a recipe, a run.

No flag has a default here. What is not said is left to `Recipe` and `Run`, whose defaults are those
of every other door. Flags of adapters are in arguments_adapters.py, of devices in
arguments_devices.py.
"""

from __future__ import annotations

import argparse

from ..base.message import Listed, Message
from ..base.suggestion import spelled
from ..model import Model
from ..recipe import Recipe
from ..run import Run, program_defaults
from ..run.fields import COUNT, NUMBER, OF_CALLS, TABLE, WORD, WORDS, Field
from ..run.recipe_choice import PRECISIONS, recipe_for
from ..terms.optimizer import OPTIMIZERS
from ..units import parse
from .arguments_adapters import adapters_of, add_adapters
from .arguments_deepspeed import read_flags
from .arguments_devices import add_devices as add_devices
from .arguments_devices import add_fsdp as add_fsdp
from .arguments_devices import devices_of, none_of
from .brought import count
from .config_argument import left_out as left_out
from .config_argument import model_of as model_of
from .config_argument import named_or as named_or

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

    from ..run.recipe_choice import Configured

OF_CALL = ("phase", *OF_CALLS)
PROBABILITY: dict[str, Any] = {"type": float, "metavar": "P"}
# Defaults of a program that a flag of the same name turns into others: none ends clipping, or
# TRL's own loss.
SAID = ("precision", "checkpoint", "optimizer_impl", "lora_dtype")


def add_model(parser: argparse.ArgumentParser, needed: str = "") -> None:
    """The arguments that every command about a model takes.

    needed      what else has to be given, for the first line of the help, which lists no flags
    """
    words = "a preset (`memlab models`), a config.json, or its folder"
    parser.usage = f"{parser.prog} CONFIG {needed}[OPTIONS]"
    parser.add_argument("model", metavar="CONFIG", help=words)
    parser.add_argument("--json", action="store_true", help="print JSON for programs")


def add_recipe(parser: argparse.ArgumentParser) -> None:
    """Formats and optimizer."""
    words = "default: what the loop takes by itself: the config's dtype, else fp32"
    group = parser.add_argument_group("formats", words)
    group.add_argument("--recipe", help="see `memlab recipes`")
    group.add_argument("--precision", choices=sorted(PRECISIONS))
    group.add_argument("--optimizer", help="default: the recipe's")


def add_run(parser: argparse.ArgumentParser) -> None:
    """The fields of memlab.Run, one flag each; of calls alone: `add_call`."""
    group = parser.add_argument_group("the run", "what is not said is what a GPU user gets")
    words = "a trainer's own file in the place of flags: axolotl, LLaMA-Factory, torchtune, "
    words += "TrainingArguments, accelerate; CONFIG may be one, too"
    group.add_argument("--trainer-config", metavar="FILE", action="append", help=words)
    for field in TABLE:
        if field.flag and field.name not in OF_CALL:
            _add_field(group, field)
    words = "of distillation and gkd: a preset or a config (default: of the student's shape)"
    group.add_argument("--teacher", metavar="CONFIG", help=words)
    words = "of the teacher (default: as its config says)"
    group.add_argument("--teacher-weights", choices=("fp32", "bf16", "fp16"), help=words)
    add_adapters(group)


def add_call(parser: argparse.ArgumentParser) -> None:
    """Flags of a call in inference."""
    group = parser.add_argument_group("inference")
    for field in TABLE:
        if field.name in OF_CALL:
            _add_field(group, field)


def _add_field(group: Any, field: Field) -> None:
    """The flag of a field: its words, and what it takes."""
    said: dict[str, Any] = {"help": f"{field.what} (default {field.unset})"}
    if not field.unset:
        said["help"] = field.what
    if field.kind == WORD:
        said["choices"] = field.known
    elif field.kind in (COUNT, NUMBER):
        said |= {"type": count, "metavar": "N"} if field.kind == COUNT else PROBABILITY
    elif field.kind == WORDS:
        said["metavar"] = "A,B"
        said["help"] += f": {', '.join(field.known)}" if field.known else ""
    else:
        both = getattr(Run, field.name) is None  # nothing said is neither
        said |= {"action": argparse.BooleanOptionalAction if both else "store_true"}
        said["default"] = None
    if field.name == "compile":
        said |= {"nargs": "?", "const": field.known[0]}
    group.add_argument(f"--{field.name.replace('_', '-')}", **said)


def recipe_of(options: argparse.Namespace, model: Configured, run: Run) -> Recipe:
    """The recipe that --recipe, --precision and --optimizer say together, else the program's.

    Raises      ValueError for --recipe beside --precision, which would say the same thing twice
    """
    read_flags(options, model)
    if options.recipe and options.precision:
        raise ValueError("--recipe and --precision both set the formats; give one of them")
    if options.precision:
        recipe = PRECISIONS[options.precision]
    else:
        recipe = recipe_for(model, options.recipe, run)
    optimizer = options.optimizer and _optimizer(options.optimizer)
    if optimizer and optimizer != recipe.optimizer:
        name = f"{recipe.name}, {optimizer}"
        recipe = recipe.replace(name=name, optimizer=optimizer, states=None)
    return recipe


def _optimizer(word: str) -> str:
    """The optimizer that a word stands for.

    Raises      ValueError for a word that is none
    """
    if word.lower().startswith("galore/"):
        return word.lower()
    return spelled("optimizer", word, sorted(OPTIMIZERS), ", galore/<rank>")


def taken(options: argparse.Namespace, recipe: Recipe, run: Run) -> list[str]:
    """The defaults that the loop's program took where no flag said another one: a line, or none."""
    chosen = bool(options.recipe or options.precision)
    line = program_defaults.told(run, recipe, chosen=chosen)
    found = program_defaults.taken(run, recipe, chosen=chosen)
    flags = [f"--{name.replace('_', '-')}" for name, *_ in found if name in SAID]
    if flags:
        line = Message("{defaults}; {flags} change them", defaults=line, flags=Listed(", ", flags))
    return [line] if line else []


def took(options: argparse.Namespace, recipe: Recipe, run: Run) -> dict[str, Any]:
    """The same for programs: the line, and each default by its field."""
    chosen = bool(options.recipe or options.precision)
    found = program_defaults.taken(run, recipe, chosen=chosen)
    made: dict[str, Any] = {"told": " ".join(taken(options, recipe, run))}
    return made | {name: value for name, value, _ in found}


def run_of(options: argparse.Namespace, model: Configured | None = None) -> Run:
    """The run that the flags say together; what they do not say stands at its default.

    Raises      ValueError for flags that mean nothing without another one; what Run raises
    """
    read_flags(options, model)
    said: dict[str, Any] = {}
    for field in TABLE:
        if field.flag and (value := getattr(options, field.name, None)) is not None:
            said[field.name] = _names(value) if field.kind == WORDS else value
    said |= adapters_of(options, model) | teacher_of(options)
    if hasattr(options, "fsdp"):
        if isinstance(model, Model):
            said["devices"] = devices_of(options, model)
        else:
            said["devices"] = none_of(options, model)
    return Run(**said)


def teacher_of(options: argparse.Namespace) -> dict[str, Any]:
    """The teacher that --teacher and --teacher-weights say together, or nothing.

    Raises      ValueError for a format of a teacher that nobody named
    """
    name, weights = (getattr(options, field, None) for field in ("teacher", "teacher_weights"))
    if name is None:
        if weights is not None:
            raise ValueError(f"--teacher-weights {weights}: say --teacher CONFIG too")
        return {}
    from ..run.teacher import Teacher  # only who distils needs it

    return {"teacher": Teacher(model_of(name), weights)}


def _names(words: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in words.split(","))


def logged(words: str) -> int:
    """Bytes of a size as a log prints it, rounded to two decimals: "14.96 GiB"."""
    before, _, rest = words.partition(".")
    places = len(rest) - len(rest.lstrip("0123456789"))
    return parse(before + rest) // 10**places if places else parse(words)


def card(words: str) -> str | int:
    """A card by its name, or "79.22 GiB" as a log has it."""
    return logged(words) if words.strip()[:1].isdigit() and "." in words else words
