"""The bill of Part I: the run of the first page, each chapter's rows filled in as it goes."""

from ..base.grid import Grid
from ..fit import limit_of
from ..model import Model
from ..run import Run
from ..step import simulate
from ..step.core.moments import hills
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


def largest(recipe: str) -> dict[str, int]:
    """Of each row the most that a step of Llama-3-8B holds, and under "peak" its highest moment.

    Shapes      one sequence of 8,192 tokens, transformers' code on CUDA, AdamW as it comes
    Unit        bytes
    """
    step = simulate(Model.preset("llama-3-8b"), recipe, Run(batch=1, tokens=8192))
    found = dict.fromkeys(CHAPTERS.values(), 0)
    for phase in hills(step).values():
        for row in phase.rows:
            if row.term in found:
                found[row.term] = max(found[row.term], row.derived or 0)
    return {**found, "peak": step.peak.bytes}


def bill(upto: str) -> Grid:
    """What the chapters up to this one have found: a "?" for each row that is still to come.

    Raises      ValueError for a chapter that adds no row, with those that do
    """
    if upto not in CHAPTERS:
        raise ValueError(f"{upto!r} adds no row to the bill; {', '.join(CHAPTERS)} do")
    known = list(CHAPTERS)[: list(CHAPTERS).index(upto) + 1]
    columns = {name: largest(recipe) for name, recipe in RECIPES.items()}
    names = {"optimizer": "optimizer states", "step": "temporaries of the optimizer"}
    rows = [
        {"maximum of each row": names.get(chapter, chapter)}
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
