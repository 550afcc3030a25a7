"""More work at once than was told, or less: more rows or fewer, longer ones, a batch in pieces."""

from __future__ import annotations

from ...run import Run
from ..case import Case, of_run
from .cause import LINES, OFTEN, SELDOM, SOMETIMES, Cause
from .turns import closest, nearest, run_with

TRAINABLE = "print(sum(p.numel() for p in model.parameters() if p.requires_grad))"
SHAPE = "print(ids.shape)"
IN_FORWARD = f"{SHAPE} in the forward pass"
ALL_TRAINED, SHORTER = (
    "no adapters: all weights trained",
    "shorter texts, padded to the longest of their batch; tokens",
)
FEWER = "fewer rows in the batch that was watched, the last of an epoch; rows"


@of_run
def _together(run: Run) -> Run | None:
    if run.micro_batches == 1:
        return None
    return run.replace(micro_batches=1, batch=run.batch * run.micro_batches)


def _longer(case: Case) -> Case | None:
    tokens = case.run.tokens
    if tokens is None or 2 * tokens > case.model.positions:
        return None
    return case.replace(run=case.run.replace(tokens=2 * tokens))


def _with(case: Case, **changes: int) -> Case | None:
    if case.run.tokens is None or case.run.phase != "train":
        return None
    run = case.run.replace(**changes)
    return None if run == case.run else case.replace(run=run)


def _row_less(case: Case) -> Case | None:
    return _with(case, batch=case.run.batch - 1) if case.run.batch > 1 else None


def _rows(case: Case, gap: int) -> tuple[Case, int] | None:
    """The number of rows whose peak comes nearest, and how many that are."""
    batch = case.run.batch
    if batch == 1 or case.run.tokens is None:
        return None
    return nearest(lambda count: _with(case, batch=count), 1, batch - 1, case.peak() - gap)


def _half_as_long(case: Case) -> Case | None:
    tokens = case.run.tokens or 0
    return _with(case, tokens=tokens // 2) if tokens > 3 else None


def _lengths(case: Case, gap: int) -> tuple[Case, int] | None:
    """The length whose peak comes nearest, in tokens."""
    tokens = case.run.tokens or 0
    if tokens < 4:
        return None
    return nearest(lambda count: _with(case, tokens=count), 2, tokens - 1, case.peak() - gap)


def _cut(case: Case, parts: int) -> Case | None:
    """The batch in so many micro-batches."""
    run = case.run
    if run.batch % parts:
        return None
    return _with(case, batch=run.batch // parts, micro_batches=parts * run.micro_batches)


def _pieces(case: Case, gap: int) -> tuple[Case, int] | None:
    """The number of micro-batches whose peak comes nearest."""
    run = case.run
    if run.tokens is None:
        return None
    parts = range(2, run.batch + 1)
    return closest(((_cut(case, n), n * run.micro_batches) for n in parts), case.peak() - gap)


MORE = (
    Cause("micro-batches taken at once", SOMETIMES, "batch", _together, IN_FORWARD),
    Cause(ALL_TRAINED, SOMETIMES, "lora", run_with(lora=None, adapter=None), TRAINABLE),
    Cause("nothing offloaded", SOMETIMES, "offload", run_with(offload=()), LINES),
    Cause("sequences of twice the length", SELDOM, "batch", _longer, SHAPE),
)
LESS = (
    Cause(SHORTER, OFTEN, "tokens", _half_as_long, IN_FORWARD, sized=_lengths),
    Cause(FEWER, SOMETIMES, "batch", _row_less, IN_FORWARD, sized=_rows),
    Cause(
        "the batch cut in pieces; micro-batches",
        SOMETIMES,
        "batch",
        lambda case: _cut(case, 2),
        IN_FORWARD,
        sized=_pieces,
    ),
)
