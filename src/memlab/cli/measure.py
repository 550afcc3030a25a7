"""`memlab measure`: train a small model and set the run beside the formula."""

from __future__ import annotations

import argparse

from ..estimate import estimate
from ..recipe import Recipe
from .estimate import add_model, model_of

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any


def add_parser(commands: Any) -> None:
    """Hook the command into `memlab`."""
    words = "Train a small model and compare it with the formula."
    parser = commands.add_parser("measure", help=words, description=words)
    parser.set_defaults(run=run)
    add_model(parser)
    parser.add_argument("--recipe", default="fp32", help="see `memlab recipes` (default fp32)")
    parser.add_argument("--steps", type=int, default=30, help="optimizer steps (default 30)")


def run(options: argparse.Namespace) -> str:
    """What the command prints.

    Raises      ValueError where torch is not installed
    """
    model, recipe = model_of(options.model), Recipe.named(options.recipe)
    try:
        from ..lab.train import train
    except ModuleNotFoundError as error:
        raise ValueError(f"measuring needs {error.name}: pip install 'memlab[torch]'") from error

    done = train(model, recipe, steps=options.steps)
    ledger = estimate(model, recipe).beside(done.ledger)
    if options.json:
        return ledger.to_json()
    return f"{ledger}\nloss {done.losses[0]:.2f} → {done.losses[-1]:.2f} in {options.steps} steps"
