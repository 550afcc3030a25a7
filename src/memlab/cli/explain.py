"""`memlab explain`: why a run needs more memory than was predicted."""

from __future__ import annotations

import argparse

from ..explain.explanation import LEVELS, explain
from ..files.seen import seen
from ..units import parse, text
from .document import document
from .given import (
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

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any


def add_parser(commands: Any) -> None:
    """Hook the command into `memlab`."""
    words = "List what can account for the bytes between a prediction and what was seen."
    parser = commands.add_parser("explain", help=words, description=words)
    parser.set_defaults(run=run)
    add_model(parser, "--seen WHAT ")
    parser.add_argument(
        "--seen",
        required=True,
        metavar="WHAT",
        help="a size (80GB), a timeline of `memlab watch`, or a memory snapshot of PyTorch",
    )
    parser.add_argument("--level", choices=LEVELS, help="what a size counted (default device)")
    parser.add_argument("--predicted", metavar="SIZE", help="what somebody had predicted")
    parser.add_argument("--on", metavar="DEVICE", help="the card: it cannot show more than it has")
    add_recipe(parser)
    add_run(parser)
    add_devices(parser)
    parser.add_argument("--master", metavar="FORMAT", help="a master copy, as it was believed")
    parser.add_argument("--states", metavar="FORMAT", help="of both states, as it was believed")
    parser.add_argument("--weights", metavar="FORMAT", help="of the weights, as it was believed")


def run(options: argparse.Namespace) -> str:
    """What the command prints.

    Raises      ValueError for more than the card has, and what `explain` raises
    """
    model = model_of(options.model)
    how = run_of(options, model)
    recipe = recipe_of(options, model, how)
    told = {name: getattr(options, name) for name in ("weights", "master")}
    changes: dict[str, Any] = {name: value for name, value in told.items() if value}
    if options.states:
        changes["states"] = (options.states, options.states)
    if changes:
        name = ", ".join([recipe.name, *(f"{k} {options.__dict__[k]}" for k in changes)])
        recipe = recipe.replace(name=name, **changes)
    found = seen(options.seen, options.level)
    if options.on:
        from ..fit import limit_of

        limit, name = limit_of(options.on, 0)
        amount = parse(found.amount) if isinstance(found.amount, str) else found.amount
        if amount > limit:
            raise ValueError(f"{text(amount)} were seen on {name}, which has {text(limit)}")
    done = explain(
        model,
        recipe,
        how,
        seen=found.amount,
        level=found.level,
        predicted=options.predicted,
    )
    parts = left_out(options.model, model, recipe) + taken(options, recipe, how)
    if options.json:
        told = done.as_dict()
        told["notes"] = [*told["notes"], *parts]
        return document("explain", **told, seen=found.words, run=how.to_dict())
    return "\n".join([str(done), *([""] if found.words else []), *found.words, *parts])
