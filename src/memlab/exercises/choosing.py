"""Exercises of choosing."""

from typing import Any

from ..estimate import estimate
from ..model import Model
from ..run import Run
from ..units import GiB
from . import exercise


def _resident(*terms: str, recipe: str = "bf16") -> int:
    rows = {row.term: row.derived for row in estimate(Model.preset("llama-3-8b"), recipe).rows}
    return sum(rows[term] or 0 for term in terms)


def _walk(recipe: str = "bf16", **setting: Any) -> int:
    from ..estimate import peak  # only who asks for this answer needs it

    return peak(Model.preset("qwen3-4b"), recipe, Run(batch=8, tokens=2048, **setting))


def _inside(recipe: str = "bf16", **setting: Any) -> int:
    return _walk(recipe, **setting) - _walk(recipe, step_in_backward=True, **setting)


def _story(**setting: Any) -> int:
    """The peak of the first page's run with some settings changed."""
    from ..estimate import peak

    return peak(Model.preset("llama-3-8b"), "bf16", Run(batch=1, tokens=8192, **setting))


CHUNKS, BLOCK = {"loss": "linear_cross_entropy"}, {"checkpoint": "block"}
INSIDE = {"step_in_backward": True}


exercise(
    "ex-choosing-1",
    answer=lambda: _story(**CHUNKS, **BLOCK, **INSIDE),
    hint="The walk takes three changes there. Is any of them missing in yours?",
    wrong={
        lambda: _story(**BLOCK, **INSIDE): "The loss is the highest phase then, and more than the "
        "card offers: it has to go into chunks as well.",
        lambda: _story(**CHUNKS, **BLOCK): "That is the step before the new change.",
        lambda: _story(**BLOCK, optimizer_impl="fused"): "That is where the walk to the H100 ends.",
    },
)

exercise(
    "ex-choosing-2",
    answer=lambda: _inside(loss="chunked"),
    hint="max(tops(recipe='bf16', loss='chunked').values()), and once more with the step inside.",
    wrong={
        lambda: _inside(loss="chunked", checkpoint="block"): "That is with checkpointing.",
        lambda: _inside("fp32", loss="chunked"): "That is in fp32; here bf16 came first.",
    },
)

exercise(
    "ex-choosing-3",
    answer=lambda: _story(**BLOCK, **CHUNKS) // GiB,
    hint="After checkpointing the peak is in the optimizer. Are there logits in that phase?",
    unit="GiB",
    wrong={
        lambda: 64: "So much it would be if savings added up. They do not: the peak moves.",
        lambda: 65: "So much it would be if savings added up. They do not: the peak moves.",
        lambda: _story(**CHUNKS) // GiB: "That is the loss in chunks alone.",
        lambda: _story() // GiB: "That is the run with nothing changed.",
    },
)

exercise(
    "ex-choosing-4",
    answer=lambda: _resident("weights", "optimizer") - 40 * GiB,
    hint="Two bytes of weight and four of states for each parameter, less 40 · 2**30.",
    wrong={
        lambda: _resident("weights", "optimizer"): "Subtract what the card offers.",
        lambda: _resident("weights", "gradients", "optimizer") - 40 * GiB: (
            "Before the first token there is no gradient."
        ),
        lambda: _resident("weights", "optimizer") - 40 * 10**9: "40 GiB are 40 · 2**30 bytes.",
    },
)
