"""The `memlab` command: estimate a model, measure a tiny one, list what is known."""

import argparse
import os
import sys

from .estimate import estimate
from .formats import bits_per_value, format_of, names, storage
from .ledger import Ledger
from .model import Model, presets
from .recipe import Recipe, recipes
from .table import as_text


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit status (2 for input that makes no sense)."""
    options = _parser().parse_args(arguments)
    try:
        print(options.run(options))
    except (ValueError, OSError) as error:
        print(f"memlab: {error}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="memlab", description="Where every byte of memory goes when a language model trains."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, run, words: str) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=words, description=words)
        made.set_defaults(run=run)
        return made

    def model_and_recipe(made: argparse.ArgumentParser) -> None:
        made.add_argument("model", help="a preset (`memlab models`), a config.json, or its folder")
        made.add_argument("--recipe", default="fp32", help="see `memlab recipes` (default fp32)")
        made.add_argument("--json", action="store_true", help="print the ledger as JSON")

    derived = command("estimate", _estimate, "Derive the resident bytes of a training run.")
    model_and_recipe(derived)
    derived.add_argument("--against", metavar="RECIPE", help="a second recipe, side by side")
    measured = command("measure", _measure, "Train a small model and compare it with the formula.")
    model_and_recipe(measured)
    measured.add_argument("--steps", type=int, default=30, help="optimizer steps (default: 30)")
    command("models", lambda _: _models(), "List the presets and their parameters.")
    command("formats", lambda _: _formats(), "List the storage formats, their bytes and sources.")
    command("recipes", lambda _: _recipes(), "List the recipes, their bytes and what they hide.")
    return parser


def _model(name: str) -> Model:
    if name in presets():
        return Model.preset(name)
    if not os.path.exists(name):
        raise ValueError(f"{name!r} is neither a file nor a preset; known: {', '.join(presets())}")
    return Model.from_config(name)


def _estimate(options: argparse.Namespace) -> str:
    model = _model(options.model)
    ledger = estimate(model, options.recipe)
    if options.against:
        comparison = ledger.compare(estimate(model, options.against))
        return comparison.to_json() if options.json else str(comparison)
    return ledger.to_json() if options.json else str(ledger)


def _measure(options: argparse.Namespace) -> str:
    model, recipe = _model(options.model), Recipe.named(options.recipe)
    try:
        from .lab.train import train
    except ModuleNotFoundError as error:
        raise ValueError(f"measuring needs {error.name}: pip install 'memlab[torch]'") from error

    run = train(model, recipe, steps=options.steps)
    ledger: Ledger = estimate(model, recipe).beside(run.ledger)
    if options.json:
        return ledger.to_json()
    return f"{ledger}\nloss {run.losses[0]:.2f} → {run.losses[-1]:.2f} in {options.steps} steps"


def _models() -> str:
    width = max(map(len, presets()))
    return "\n".join(
        f"{name.ljust(width)}  {Model.preset(name).parameter_count:>14,} parameters"
        for name in presets()
    )


def _formats() -> str:
    rows = [["format", "bits each", "block", "bytes of 2^20 values", "source"]]
    for name in names():
        kind = format_of(name)
        block = str(kind.block) if kind.block > 1 else "none"
        size = f"{storage(2**20, kind):,}"
        rows.append([name, f"{bits_per_value(kind):g}", block, size, kind.source])
    return as_text(rows)


def _recipes() -> str:
    lines = []
    for name in recipes():
        recipe = Recipe.named(name)
        lines += [str(recipe), f"    hides: {recipe.hides}"]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
