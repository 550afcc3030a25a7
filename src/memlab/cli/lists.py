"""What memlab knows, listed: `memlab devices`, `models`, `formats`, `recipes`."""

from __future__ import annotations

from ..base.table import as_text
from ..formats import bits_per_value, format_of, names, storage
from ..model import Model, presets
from ..recipe import Recipe
from ..recipe import recipes as recipe_names
from ..units import text
from .document import document

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    import argparse

SHAPE = ("layers", "d_model", "d_ff", "heads", "kv_heads", "head_dim", "vocab", "positions", "tied")
PARTS = (
    *("weights", "other", "head", "gradients", "master", "accumulator"),
    *("optimizer", "autocast", "tie"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A list takes nothing but its form."""
    parser.add_argument("--json", action="store_true", help="print JSON for programs")


def models(options: argparse.Namespace) -> str:
    known = [Model.preset(name) for name in presets()]
    if options.json:
        rows = [
            {"name": one.name, "family": one.family, "parameters": one.parameter_count}
            | {field: getattr(one, field) for field in SHAPE}
            for one in known
        ]
        return document("models", models=rows)
    width = max(len(one.name) for one in known)
    return "\n".join(
        f"{one.name.ljust(width)}  {one.parameter_count:>14,} parameters" for one in known
    )


def devices(options: argparse.Namespace) -> str:
    from ..devices import devices as known
    from ..engines import apple

    read = {one.name: (apple.SOURCES[one.marketed],) for one in apple.macs()}
    if options.json:
        fields = ("name", "marketed", "driver", "usable", "limit", "capability", "sources")
        rows = [{field: getattr(one, field) for field in fields} for one in known()]
        for one in apple.macs():  # of which llama.cpp alone is counted
            row = {field: getattr(one, field) for field in fields}
            rows.append(row | {"sources": read[one.name]})
        return document("devices", unit="bytes", devices=rows)
    table = [["device", "on the box", "driver", "usable", "read by"]]
    for one in known() + apple.macs():
        sizes = [text(size) if size else "unknown" for size in (one.driver, one.usable)]
        source = (one.sources or read[one.name])[0]
        table.append([one.name, f"{one.marketed} GB", *sizes, source])
    return as_text(table) + "\nApple's GPUs are counted for llama.cpp alone."


def formats(options: argparse.Namespace) -> str:
    known = [(name, format_of(name)) for name in names()]
    if options.json:
        rows = [
            {
                "name": name,
                "bits_per_value": bits_per_value(kind),
                "block": kind.block,
                "bytes_of_2_20_values": storage(2**20, kind),
                "source": kind.source,
            }
            for name, kind in known
        ]
        return document("formats", formats=rows)
    table = [["format", "bits each", "block", "bytes of 2^20 values", "source"]]
    for name, kind in known:
        block = str(kind.block) if kind.block > 1 else "none"
        size = f"{storage(2**20, kind):,}"
        table.append([name, f"{bits_per_value(kind):g}", block, size, kind.source])
    return as_text(table)


def recipes(options: argparse.Namespace) -> str:
    known = [Recipe.named(name) for name in recipe_names()]
    if options.json:
        rows = [
            {"name": name}
            | {part: getattr(one, part) for part in PARTS}
            | {"states": one.states, "hides": one.hides, "source": one.source}
            for name, one in zip(recipe_names(), known, strict=True)
        ]
        return document("recipes", recipes=rows)
    return "\n".join(f"{one}\n    hides: {one.hides}" for one in known)
