"""`memlab explain`: what a pasted message says, and why a run needs more than was predicted."""

from __future__ import annotations

import argparse
import os
import sys

from ..explain import pasted
from ..explain.causes.of_formats import BY_PRECISION
from ..explain.causes.of_work import ALL_TRAINED
from ..explain.explanation import LEVELS, explain
from ..files.observation import MOST_TEXT, STDIN, decoded, read, seen
from ..units import parse, text
from . import explain_serving
from .arguments import (
    add_devices,
    add_model,
    add_recipe,
    add_run,
    left_out,
    model_of,
    recipe_of,
    run_of,
    taken,
)
from .document import document
from .wide_experts import wide_experts

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

    from ..files.seen import Seen
    from ..model import Model
    from ..recipe import Recipe
    from ..run import Run
    from .parser import Parser

FILE = "FILE"  # of a pasted text that has no name


def add_arguments(parser: Parser) -> None:
    """A model, its recipe, its run and what was seen."""
    add_model(parser, "PASTED ")
    parser.usage = f"{parser.prog} [CONFIG] [PASTED] [OPTIONS]"
    parser.late = "pasted"
    for action in parser._actions:
        if action.dest == "model":
            action.nargs, action.required = "?", False
    words = "an out-of-memory message, or a file with one in it: a log, nvidia-smi's table, "
    words += "memory_summary(), a snapshot, a profiler's trace; - or nothing: standard input"
    parser.add_argument("pasted", nargs="?", metavar="PASTED", help=words)
    words = "the same, or a size (80GB), or a timeline of `memlab watch`"
    parser.add_argument("--seen", metavar="WHAT", help=words)
    parser.add_argument("--level", choices=LEVELS, help="what a size counted (default device)")
    parser.add_argument("--predicted", metavar="SIZE", help="what somebody had predicted")
    parser.add_argument("--on", metavar="DEVICE", help="the card: it cannot show more than it has")
    add_recipe(parser)
    add_run(parser)
    add_devices(parser)
    parser.add_argument("--master", metavar="FORMAT", help="a master copy, as it was believed")
    parser.add_argument("--states", metavar="FORMAT", help="of both states, as it was believed")
    parser.add_argument("--weights", metavar="FORMAT", help="of the weights, as it was believed")
    explain_serving.add_arguments(parser)


def run(options: argparse.Namespace) -> str | tuple[str, int]:
    """What the command prints.

    Raises      ValueError for more than the card has, and what `explain` raises
    """
    name, told = _asked(options)
    data = sys.stdin.buffer.read(MOST_TEXT + 1) if told == STDIN else None
    words = told if data is None else decoded(data)
    if options.engine or explain_serving.is_log(words):
        return explain_serving.run(options, name, words)
    found = seen(told, options.level) if data is None else read(data, "standard input")
    if name is None:
        return _alone(options, found, told)
    model = model_of(name)
    how = run_of(options, model)
    recipe = _believed(options, model, how)
    _check_card(options, found)
    done = explain(
        model,
        recipe,
        how,
        seen=found.amount,
        level=found.level,
        predicted=options.predicted,
        at_least=found.at_least,
        rounded_to=found.rounding,
        settled=(
            *(BY_PRECISION if options.precision or options.recipe else ()),
            *((ALL_TRAINED,) if how.adapters is not None else ()),
        ),
    )
    rows = pasted.rows_of(found, model, recipe, how)
    parts = left_out(name, model, recipe) + taken(options, recipe, how)
    message = [*pasted.said(found), *pasted.request(found, rows, how)]
    if found.asked is not None and how.tokens is not None:
        message += pasted.beside_peak(found, done.predicted.total())
    parts += [] if how.tokens is not None else [pasted.NO_STEP]
    parts += wide_experts(model, recipe, how)
    if options.json:
        told_ = done.as_dict()
        told_["notes"] = [*message, *told_["notes"], *parts]
        more = {"read": found.as_dict(), "request": rows, "run": how.to_dict()}
        return document("explain", **told_, seen=found.words, **more)
    return "\n".join(
        [*_lines(message), *([""] if message else []), str(done)]
        + [*([""] if found.words else []), *found.words, *_lines(parts)]
    )


def _asked(options: argparse.Namespace) -> tuple[str | None, str]:
    """The model, if one was given, and what was seen.

    Raises      ValueError where nothing was seen, or the same thing is said twice
    """
    name, told = options.model, options.pasted
    if options.seen is not None:
        if told is not None:
            raise ValueError("PASTED and --seen both say what was seen; give one of them")
        return name, options.seen
    if told is not None:
        return name, told
    if name is not None and not _is_model(name):
        return None, name
    if sys.stdin is None or sys.stdin.isatty():
        raise ValueError(
            "nothing was seen: give the out-of-memory message, a file with it, --seen SIZE, or "
            "memlab explain < log.txt"
        )
    return name, STDIN


def _is_model(word: str) -> bool:
    """Whether a single word is a CONFIG, not what was pasted: a preset, a config or its folder."""
    from ..model import presets

    if word == STDIN or len(word) > 255 or "\n" in word:
        return False
    if not os.path.isfile(word):
        return word.lower() in presets() or os.path.isdir(word) or not any(map(str.isspace, word))
    if os.path.basename(word) == "config.json":
        return True
    with open(word, "rb") as file:
        head = file.read(2**16)
    return head.lstrip()[:1] == b"{" and (b'"model_type"' in head or b'"architectures"' in head)


def _alone(options: argparse.Namespace, found: Seen, told: str) -> str:
    """The answer to a message without a model.

    Raises      ValueError for a size, of which nothing can be said alone
    """
    if found.kind == "size":
        raise ValueError(f"{told}: of which model? say CONFIG too, such as llama-3-8b")
    file = told if os.path.isfile(told) and " " not in told else FILE
    lines = [*pasted.said(found), *([pasted.more(found, file)] if found.level != "process" else [])]
    if options.json:
        read = found.as_dict() | {"amount": found.amount, "level": found.level}
        return document("explain pasted", read=read, notes=lines, seen=found.words)
    return "\n".join([*_lines(lines), *found.words])


def _believed(options: argparse.Namespace, model: Model, how: Run) -> Recipe:
    """The recipe, with the formats that were believed."""
    recipe = recipe_of(options, model, how)
    told = {name: getattr(options, name) for name in ("weights", "master")}
    changes: dict[str, Any] = {name: value for name, value in told.items() if value}
    if options.states:
        changes["states"] = (options.states, options.states)
    if not changes:
        return recipe
    name = ", ".join([recipe.name, *(f"{k} {options.__dict__[k]}" for k in changes)])
    return recipe.replace(name=name, **changes)


def _check_card(options: argparse.Namespace, found: Seen) -> None:
    """Raises ValueError where more was seen than the card of --on has."""
    if not options.on:
        return
    from ..fit import limit_of

    limit, name = limit_of(options.on, 0)
    amount = parse(found.amount) if isinstance(found.amount, str) else found.amount
    amount -= found.asked or 0  # which it did not get
    if amount > limit:
        raise ValueError(f"{text(amount)} were seen on {name}, which has {text(limit)}")


def _lines(messages: list[str]) -> list[str]:
    """Sentences in the reader's language."""
    from ..base.messages import say

    return [str(say(one)) for one in messages]
