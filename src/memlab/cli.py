"""The `memlab` command: estimate a model, measure a tiny one, list what is known."""

import argparse
import sys

from . import cli_estimate, cli_fit
from .estimate import estimate
from .formats import bits_per_value, format_of, names, storage
from .ledger import Ledger
from .model import Model, presets
from .recipe import Recipe, recipes
from .table import as_text
from .units import text


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit status (2 for input that makes no sense)."""
    options = _parser().parse_args(arguments)
    try:
        print(options.run(options))
    except (ValueError, TypeError, OSError) as error:
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

    cli_estimate.add_parser(commands)
    cli_fit.add_parser(commands)
    measured = command("measure", _measure, "Train a small model and compare it with the formula.")
    cli_estimate.add_model(measured)
    measured.add_argument("--recipe", default="fp32", help="see `memlab recipes` (default fp32)")
    measured.add_argument("--steps", type=int, default=30, help="optimizer steps (default: 30)")
    command("devices", lambda _: _devices(), "List GPUs and the memory that they really offer.")
    command("models", lambda _: _models(), "List the presets and their parameters.")
    command("formats", lambda _: _formats(), "List the storage formats, their bytes and sources.")
    command("recipes", lambda _: _recipes(), "List the recipes, their bytes and what they hide.")
    return parser


def _measure(options: argparse.Namespace) -> str:
    model, recipe = cli_estimate.model_of(options.model), Recipe.named(options.recipe)
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


def _devices() -> str:
    from .devices import devices

    rows = [["device", "on the box", "driver", "usable", "read by"]]
    for one in devices():
        sizes = [text(size) if size else "unknown" for size in (one.driver, one.usable)]
        rows.append([one.name, f"{one.marketed} GB", *sizes, one.sources[0]])
    return as_text(rows)


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
