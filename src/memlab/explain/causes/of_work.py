"""More work than was believed: more rows at once, longer ones, more weights, nothing offloaded."""

from __future__ import annotations

from ...run import Run
from ..case import Case, of_run
from .cause import LINES, SELDOM, SOMETIMES, Cause


def _together(run: Run) -> Run | None:
    if run.micro_batches == 1:
        return None
    return run.replace(micro_batches=1, batch=run.batch * run.micro_batches)


def _longer(case: Case) -> Case | None:
    tokens = case.run.tokens
    if tokens is None or 2 * tokens > case.model.positions:
        return None
    return case.replace(run=case.run.replace(tokens=2 * tokens))


WORK = (
    Cause(
        "micro-batches taken at once",
        SOMETIMES,
        "batch",
        of_run(_together),
        "print(ids.shape) in the forward pass",
    ),
    Cause(
        "no adapters: all weights trained",
        SOMETIMES,
        "lora",
        of_run(lambda run: run.replace(lora=None, adapter=None)),
        "print(sum(p.numel() for p in model.parameters() if p.requires_grad))",
    ),
    Cause(
        "nothing offloaded",
        SOMETIMES,
        "offload",
        of_run(lambda run: run.replace(offload=())),
        LINES,
    ),
    Cause("sequences of twice the length", SELDOM, "batch", _longer, "print(ids.shape)"),
)
