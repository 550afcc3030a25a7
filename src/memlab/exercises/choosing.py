"""Exercises of choosing."""

from typing import Any

from ..estimate import estimate
from ..model import Model
from ..run import Run
from ..terms.context import CONTEXT
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


def _sequences(**setting: Any) -> int:
    from ..fit import largest_batch

    model = Model.preset("qwen3-0.6b")
    return largest_batch(model, "bf16", Run(tokens=1024, **setting), on="RTX 4090", spare=GiB).value


def _fitted(on: str = "48 GiB") -> int:
    from ..fit import cheapest_change

    run = Run(batch=1, tokens=4096)
    made = cheapest_change(Model.preset("llama-3-8b"), "bf16", run, on=on, spare=CONTEXT)
    return made[-1][2]


exercise(
    "ex-choosing-1",
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
    answer=lambda: _sequences(checkpoint="block", loss="chunked") - _sequences(checkpoint="block"),
    hint="largest_batch(…).value with loss='chunked', less the same with loss='plain'.",
    unit="sequences",
    wrong={
        lambda: _sequences(checkpoint="block", loss="chunked"): "How many more, not how many.",
        lambda: _sequences(loss="chunked") - _sequences(): "Both with checkpointing.",
    },
)

exercise(
    "ex-choosing-4",
    answer=_fitted,
    hint="The third entry of the last change: cheapest_change(…)[-1][2].",
    wrong={
        lambda: 48 * GiB: "That is the card. How much of it does the step take?",
        lambda: _fitted("24 GiB"): "That is what a card of 24 GiB would need.",
    },
)
