"""`memlab estimate`: what a model's config alone says about its memory, for people and programs."""

from __future__ import annotations

import argparse

from ..estimate import estimate
from ..ledger import Comparison, Ledger
from ..model import Model
from ..model.fields import used
from ..recipe import Recipe
from ..recipe.chosen import recipe_for
from ..run import Run
from ..units import text
from . import given
from .document import document
from .estimate_json import ADAPTERS, as_json
from .simulated import simulated

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any


def add_parser(commands: Any) -> None:
    """Hook the command into `memlab`."""
    words = "Derive memory from a config: what stays, and with --tokens the peak of a step."
    parser = commands.add_parser("estimate", help=words, description=words)
    parser.set_defaults(run=run)
    given.add_model(parser)
    parser.add_argument("--against", metavar="RECIPE", help="a second recipe, side by side")
    parser.add_argument("--plot", metavar="FILE.svg", help="draw the ledger as a bar")
    given.add_recipe(parser)
    given.add_run(parser)
    given.add_call(parser)
    given.add_devices(parser)


def run(options: argparse.Namespace) -> str:
    """What the command prints.

    Raises      ValueError for --plot beside --against: a bar shows one recipe
    """
    model = given.model_of(options.model)
    recipe, how = given.recipe_of(options, model), given.run_of(options, model)
    ledger = estimate(model, recipe, how)
    if options.against:
        if options.plot:
            raise ValueError("--plot draws one recipe; leave out --against")
        comparison = ledger.compare(estimate(model, recipe_for(model, options.against), how))
        return _compared(comparison, how) if options.json else str(comparison)
    _plot(ledger, options.plot)
    if options.json:
        return as_json(model, recipe, how, ledger)
    return "\n".join(
        [str(ledger), *_moments(model, recipe, how), *_small_print(model, recipe, how)]
    )


def _small_print(model: Model, recipe: Recipe, how: Run) -> list[str]:
    """What of a config was used, and what a figure about adapters takes for granted."""
    lines = []
    if model.config:
        told = used(model.family, model.config)
        lines += [
            f"config, {kind}: {', '.join(sorted(keys))}" for kind, keys in told.items() if keys
        ]
    if how.lora is not None and recipe.weights != "fp32":
        lines.append(ADAPTERS.format(weights=recipe.weights))
    return lines


def _compared(comparison: Comparison, how: Run) -> str:
    rows = [{"term": term, "left": x, "right": y} for term, x, y in comparison.figures()]
    titles = {"left": comparison.left.title, "right": comparison.right.title}
    return document("estimate --against", unit="bytes", **titles, rows=rows, run=how.to_dict())


def _plot(ledger: Ledger, path: str | None) -> None:
    if path:
        from ..plot import ledger_bar

        ledger_bar(ledger).save(path)


def _moments(model: Model, recipe: Recipe, how: Run) -> list[str]:
    """The quiet moments of a step or a call, a line each."""
    found = simulated(model, recipe, how)
    if found is None:
        return []
    if how.phase == "train":
        moments = {**found.held, "peak of the first step": found.peak.first_step_bytes}
    else:
        moments = {**found.held, "each new token adds": found.per_token}
    return [f"{name.replace('_', ' '):22} {text(size)}" for name, size in moments.items()]
