"""What people give on the command line, as values: a model, a recipe, a run.

No flag has a default here. What is not said is left to `Recipe` and `Run`, whose defaults are those
of every other door. Flags of adapters are in given_adapters, of several devices in given_devices.
"""

from __future__ import annotations

import argparse

from .. import program_defaults
from ..base.message import Listed, Message
from ..base.near import spelled
from ..model import Model
from ..recipe import Recipe
from ..recipe.chosen import PRECISIONS, recipe_for
from ..run import HOLDS, KNOWN, OFFLOAD, Run
from ..terms.optimizer import OPTIMIZERS
from .given_adapters import adapters_of, add_adapters
from .given_deepspeed import read_flags
from .given_devices import add_devices as add_devices
from .given_devices import add_fsdp as add_fsdp
from .given_devices import devices_of, none_of
from .named import left_out as left_out
from .named import model_of as model_of
from .named import named_or as named_or

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

    from ..recipe.chosen import Configured

# Flag, a field of Run that takes one of the words that KNOWN has for it, and what it is.
WORDS = (
    ("attention", "default: what the config says, else sdpa"),
    ("kernel", "of SDPA on CUDA (default: torch's choice)"),
    ("backend", "whose kernels run it (default cuda)"),
    ("implementation", "whose code runs the model (default transformers)"),
    ("optimizer-impl", "the optimizer's loop (default: torch's foreach on cuda, forloop on cpu)"),
    ("loop", "whose program runs the steps, and what it holds beside them (default plain)"),
    ("texts", "rows that are full, padded, or several texts packed into one (default full)"),
    ("reference", "of dpo and grpo: a second model, or its numbers alone (default the trainer's)"),
    (
        "checkpoint",
        "compute each layer's activations again in backward (default: as the loop)",
    ),
    ("loss", "all at once, in chunks of rows, or made by TRL, torch or Liger (default plain)"),
)
NUMBERS = (
    ("batch", int, "N", "sequences in one micro-batch (default 1)"),
    ("tokens", int, "N", "in each sequence; without it, no step"),
    ("completion", int, "N", "tokens of each sequence that TRL's loops learn (default all)"),
    ("eval-batch", int, "N", "sequences of a batch in an evaluation between steps (default none)"),
    ("eval-logits", int, "N", "batches of it whose logits wait on the device (default 0)"),
    ("micro-batches", int, "N", "before one step of the optimizer (default 1)"),
    ("loss-chunks", int, "N", "chunks of rows in a chunked loss (default 8)"),
    ("dropout", float, "P", "of every dropout (default: what the config or its class says)"),
    ("window", int, "N", "mistral's sliding window, 0 for none (default: the config's)"),
)
LISTS = (
    ("frozen", "components whose weights are not trained: embedding, attention, ..."),
    ("offload", f"what waits on a host: {', '.join(OFFLOAD)}"),
    ("holds", f"what the loop keeps beside the step: {', '.join(HOLDS)}"),
)


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
    """The fields of memlab.Run, one flag each."""
    group = parser.add_argument_group("the run", "what is not said is what a GPU user gets")
    for flag, kind, metavar, words in NUMBERS:
        group.add_argument(f"--{flag}", type=kind, metavar=metavar, help=words)
    for flag, words in WORDS:
        group.add_argument(f"--{flag}", choices=KNOWN[flag.replace("-", "_")], help=words)
    words = "torch.compile's backend, for `memlab trace` (without one: inductor)"
    known = KNOWN["compile"]
    group.add_argument("--compile", choices=known, nargs="?", const=known[0], help=words)
    for flag, words in LISTS:
        group.add_argument(f"--{flag}", metavar="A,B", help=words)
    words = "of distillation and gkd: a preset or a config (default: of the student's shape)"
    group.add_argument("--teacher", metavar="CONFIG", help=words)
    words = "of the teacher (default: as its config says)"
    group.add_argument("--teacher-weights", choices=("fp32", "bf16", "fp16"), help=words)
    words = "update each weight as soon as its gradient is complete"
    group.add_argument("--step-in-backward", action="store_true", default=None, help=words)
    words = "clip the gradients' norm before the optimizer's step (default: as the loop does)"
    group.add_argument("--clip", action=argparse.BooleanOptionalAction, default=None, help=words)
    add_adapters(group)


def add_call(parser: argparse.ArgumentParser) -> None:
    """Flags of a call in inference."""
    group = parser.add_argument_group("inference")
    group.add_argument("--phase", choices=KNOWN["phase"], help="default train")
    words = "prefill: of all tokens, or of the last one as generate() asks (default all)"
    group.add_argument("--logits", choices=KNOWN["logits"], help=words)
    words = "under torch.inference_mode() instead of torch.no_grad()"
    group.add_argument("--inference-mode", action="store_true", default=None, help=words)


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
    names = [flag.replace("-", "_") for flag, *_ in (*NUMBERS, *WORDS)]
    names += ["compile", "step_in_backward", "clip", "phase", "logits", "inference_mode"]
    said: dict[str, Any] = {}
    for name in names:
        if (value := getattr(options, name, None)) is not None:
            said[name] = value
    for name in ("frozen", "offload", "holds"):
        if (value := getattr(options, name)) is not None:
            said[name] = _names(value)
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
    from ..run_teacher import Teacher  # only who distils needs it

    return {"teacher": Teacher(model_of(name), weights)}


def _names(words: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in words.split(","))
