"""`memlab fit`: what fits a device, and the cheapest change that makes a step fit."""

from __future__ import annotations

import argparse

from ..changes import cheapest_change
from ..fit import ON_A_GPU, largest_batch, longest_sequence
from ..units import parse, text
from .estimate import add_model, add_step, choices_of, model_of, recipe_of

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any


def add_parser(commands: Any) -> None:
    """Hook the command into `memlab`."""
    words = "Find the largest batch (--tokens), the longest sequence (--batch), or what to change."
    parser = commands.add_parser("fit", help=words, description=words)
    parser.set_defaults(run=run)
    add_model(parser)
    parser.add_argument("--on", required=True, help="a device (`memlab devices`) or a size")
    parser.add_argument("--batch", type=int, help="with --tokens too: does this step fit?")
    parser.add_argument("--tokens", type=int)
    parser.add_argument("--spare", default="1 GiB", help="left free for context, kernels, rounding")
    add_step(parser)
    parser.set_defaults(**ON_A_GPU)


def run(options: argparse.Namespace) -> str:
    """What the command prints.

    Raises      ValueError without --batch and without --tokens
    """
    model, recipe = model_of(options.model), recipe_of(options)
    given = {"on": options.on, "spare": parse(options.spare), **choices_of(options)}
    if options.batch is None and options.tokens is None:
        raise ValueError("give --tokens (for the largest batch), --batch, or both")
    if options.batch is None:
        return _answer(largest_batch(model, recipe, tokens=options.tokens, **given), options.json)
    if options.tokens is None:
        return _answer(longest_sequence(model, recipe, batch=options.batch, **given), options.json)
    sizes = {"batch": options.batch, "tokens": options.tokens}
    changes = cheapest_change(model, recipe, **sizes, **given)
    if options.json:
        names = ("change", "cost", "peak")
        return _json(
            {"fits": not changes, "changes": [dict(zip(names, c, strict=True)) for c in changes]}
        )
    if not changes:
        return f"it fits {options.on} as it is"
    lines = [f"{text(size):>10}  after {name}: {cost}" for name, cost, size in changes]
    return "\n".join(
        [f"it does not fit {options.on}; the cheapest changes that make it fit:", *lines]
    )


def _answer(fit: Any, as_json: bool) -> str:
    if not as_json:
        return str(fit)
    names = ("what", "value", "peak", "limit", "device")
    return _json({name: getattr(fit, name) for name in names})


def _json(document: dict[str, Any]) -> str:
    import json

    return json.dumps(document, ensure_ascii=False, indent=1)
