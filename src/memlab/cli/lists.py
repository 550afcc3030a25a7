"""What memlab knows, listed: `memlab devices`, `models`, `formats`, `recipes`."""

from __future__ import annotations

from ..formats import bits_per_value, format_of, names, storage
from ..model import Model, presets
from ..recipe import Recipe
from ..recipe import recipes as recipe_names
from ..table import as_text
from ..units import text

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any


def add_parser(commands: Any) -> None:
    """Hook the four lists into `memlab`."""
    for function, words in (
        (devices, "List GPUs and the memory that they really offer."),
        (models, "List the presets and their parameters."),
        (formats, "List the storage formats, their bytes and sources."),
        (recipes, "List the recipes, their bytes and what they hide."),
    ):
        parser = commands.add_parser(function.__name__, help=words, description=words)
        parser.set_defaults(run=function)


def models(_: Any) -> str:
    width = max(map(len, presets()))
    return "\n".join(
        f"{name.ljust(width)}  {Model.preset(name).parameter_count:>14,} parameters"
        for name in presets()
    )


def devices(_: Any) -> str:
    from ..devices import devices as known

    rows = [["device", "on the box", "driver", "usable", "read by"]]
    for one in known():
        sizes = [text(size) if size else "unknown" for size in (one.driver, one.usable)]
        rows.append([one.name, f"{one.marketed} GB", *sizes, one.sources[0]])
    return as_text(rows)


def formats(_: Any) -> str:
    rows = [["format", "bits each", "block", "bytes of 2^20 values", "source"]]
    for name in names():
        kind = format_of(name)
        block = str(kind.block) if kind.block > 1 else "none"
        size = f"{storage(2**20, kind):,}"
        rows.append([name, f"{bits_per_value(kind):g}", block, size, kind.source])
    return as_text(rows)


def recipes(_: Any) -> str:
    lines = []
    for name in recipe_names():
        recipe = Recipe.named(name)
        lines += [str(recipe), f"    hides: {recipe.hides}"]
    return "\n".join(lines)
