"""The bill of the first page's run: filled in by Part I, brought down by Part II."""

from collections.abc import Callable
from typing import Any

from ..base.grid import Grid
from ..fit import limit_of
from ..model import Model
from ..run import Run
from ..step import simulate
from ..step.core.moments import Moments, hills
from ..units import text

# The chapter that fills a row, by its label -> the terms of that row in a ledger.
CHAPTERS = {
    "weights": "weights",
    "gradients": "gradients",
    "optimizer": "optimizer",
    "activations": "activations",
    "logits": "logits",
    "step": "other",
}
RECIPES = {"everything in bf16": "bf16", "mixed precision (fp32 weights, autocast)": "autocast"}

NAMES = {"optimizer": "optimizer states", "step": "temporaries of the optimizer"}
CARDS = ("H100 80GB", "RTX 4090")


def largest(recipe: str, *, model: Model | None = None, **change: Any) -> dict[str, Any]:
    """Of each row the most that a step of Llama-3-8B holds, and under "peak" its highest moment.

    Shapes      one sequence of 8,192 tokens, transformers' code on CUDA, AdamW as it comes
    model       in the place of Llama-3-8B, as one of its parts changed
    change      fields of Run that differ
    Unit        bytes; "phase" is the one with the peak
    """
    run = Run(batch=1, tokens=8192, **change)
    step = simulate(model or Model.preset("llama-3-8b"), recipe, run, every_layer=True)
    found: dict[str, Any] = dict.fromkeys(CHAPTERS.values(), 0)
    moments = Moments(step)
    for moment in moments.timeline:
        for row, size in moments.contents(moment.index).items():
            # what is "other" elsewhere is no temporary of the optimizer
            if row in found and (row != "other" or moment.phase == "optimizer"):
                found[row] = max(found[row], size)
    return {**found, "peak": step.peak.bytes, "phase": phase_of(step)}


def phase_of(step: Any) -> str:
    """The phase of a step whose highest moment is the peak; a peak among logits is the loss's."""
    phases = hills(step)
    return max(phases, key=lambda name: phases[name].total())


def bill(upto: str) -> Grid:
    """What the chapters up to this one have found: a "?" for each row that is still to come.

    Raises      ValueError for a chapter that adds no row, with those that do
    """
    if upto not in CHAPTERS:
        raise ValueError(f"{upto!r} adds no row to the bill; {', '.join(CHAPTERS)} do")
    known = list(CHAPTERS)[: list(CHAPTERS).index(upto) + 1]
    columns = {name: largest(recipe) for name, recipe in RECIPES.items()}
    rows = [
        {"maximum of each row": NAMES.get(chapter, chapter)}
        | {name: text(found[term]) if chapter in known else "?" for name, found in columns.items()}
        for chapter, term in CHAPTERS.items()
    ]
    if upto != "step":
        return Grid.of(rows, title="Llama-3-8B, AdamW, 1 × 8,192 tokens")
    card, _ = limit_of("H100 80GB")
    peak = {name: found["peak"] for name, found in columns.items()}
    rows.append({"maximum of each row": "the peak"} | {k: text(v) for k, v in peak.items()})
    over = {name: text(size - card) for name, size in peak.items()}
    rows.append({"maximum of each row": "more than the H100 has"} | over)
    return Grid.of(rows, title="Llama-3-8B, AdamW, 1 × 8,192 tokens", foot=2)


def brought_down(
    name: str, *, before: dict[str, Any] | None = None, so_far: str = "", **change: Any
) -> Grid:
    """The closed bill and the bill after one change, in both recipes.

    name        of the change, as the head of its columns
    before      fields of Run that both columns have
    so_far      what `before` has done, as the head of the first column; "so far" if not said
    change      fields of Run that the change sets: checkpoint="block"
    Raises      ValueError for no change, and for a name of what was done where nothing was
    """
    if not change:
        raise ValueError(f"{name!r} changes no field of Run; say which, as checkpoint='block'")
    if so_far and not before:
        raise ValueError(f"so_far={so_far!r} names no change; say in `before` what was done")
    shared = before or {}
    columns = {}
    for recipe, short in (("bf16", "bf16"), ("autocast", "mixed precision")):
        columns[f"{short}, {so_far or 'so far'}" if shared else short] = largest(recipe, **shared)
        columns[f"{short}, {name}"] = largest(recipe, **(shared | change))
    return bills(columns)


def bills(columns: dict[str, dict[str, Any]]) -> Grid:
    """Bills next to each other, as `largest` gives them, and what is too much for each card."""
    rows = [
        {"maximum of each row": NAMES.get(chapter, chapter)}
        | _each(columns, lambda c, term=term: text(c[term]))
        for chapter, term in CHAPTERS.items()
    ]
    rows.append({"maximum of each row": "the peak"} | _each(columns, lambda c: text(c["peak"])))
    rows.append({"maximum of each row": "in the phase"} | _each(columns, lambda c: c["phase"]))
    for card in CARDS:
        size, _ = limit_of(card)
        over = _each(columns, lambda c, size=size: _over(c["peak"], size))
        rows.append({"maximum of each row": f"too much for {card}"} | over)
    return Grid.of(rows, title="Llama-3-8B, AdamW, 1 × 8,192 tokens", foot=4)


def _each(columns: dict[str, dict[str, Any]], cell: Callable[..., str]) -> dict[str, str]:
    return {head: cell(found) for head, found in columns.items()}


def _over(peak: int, size: int) -> str:
    return text(peak - size) if peak > size else "fits"
