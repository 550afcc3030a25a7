"""Less work at once than was told: fewer rows, shorter ones, a batch in pieces."""

from __future__ import annotations

from ..case import Case
from ..causes.cause import OFTEN, SOMETIMES, Cause
from .turns import nearest

SHAPE = "print(ids.shape) in the forward pass"


def _with(case: Case, **changes: int) -> Case | None:
    if case.run.tokens is None or case.run.phase != "train":
        return None
    run = case.run.replace(**changes)
    return None if run == case.run else case.replace(run=run)


def _row_less(case: Case) -> Case | None:
    return _with(case, batch=case.run.batch - 1) if case.run.batch > 1 else None


def _rows(case: Case, gap: int) -> tuple[Case, int] | None:
    """The number of rows whose peak comes nearest, and how many that are fewer."""
    batch = case.run.batch
    if batch == 1 or case.run.tokens is None:
        return None
    found = nearest(lambda count: _with(case, batch=count), 1, batch - 1, case.peak() - gap)
    return found and (found[0], found[1])


def _half_as_long(case: Case) -> Case | None:
    tokens = case.run.tokens or 0
    return _with(case, tokens=tokens // 2) if tokens > 3 else None


def _lengths(case: Case, gap: int) -> tuple[Case, int] | None:
    """The length whose peak comes nearest, in tokens."""
    tokens = case.run.tokens or 0
    if tokens < 4:
        return None
    return nearest(lambda count: _with(case, tokens=count), 2, tokens - 1, case.peak() - gap)


def _halves(case: Case) -> Case | None:
    run = case.run
    if run.batch % 2:
        return None
    return _with(case, batch=run.batch // 2, micro_batches=2 * run.micro_batches)


def _pieces(case: Case, gap: int) -> tuple[Case, int] | None:
    """The number of micro-batches whose peak comes nearest."""
    run, goal = case.run, case.peak() - gap
    if run.tokens is None:
        return None
    found: tuple[Case, int] | None = None
    for parts in (count for count in range(2, run.batch + 1) if run.batch % count == 0):
        cut = _with(case, batch=run.batch // parts, micro_batches=parts * run.micro_batches)
        if cut and (found is None or abs(cut.peak() - goal) < abs(found[0].peak() - goal)):
            found = cut, parts * run.micro_batches
    return found


WORK = (
    Cause(
        "shorter texts, padded to the longest of their batch; tokens",
        OFTEN,
        "tokens",
        _half_as_long,
        SHAPE,
        sized=_lengths,
    ),
    Cause(
        "fewer rows in the batch that was watched, the last of an epoch; rows",
        SOMETIMES,
        "batch",
        _row_less,
        SHAPE,
        sized=_rows,
    ),
    Cause(
        "the batch cut in pieces; micro-batches",
        SOMETIMES,
        "batch",
        _halves,
        SHAPE,
        sized=_pieces,
    ),
)
