"""Adafactor: the second moment as a row and a column, multiplied out for each update."""

from __future__ import annotations

from functools import partial

from ..core.engine import Engine
from ..core.graph import Parameter, Tensor
from .each import Each, Made, Temporaries, make_states, those

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Sequence


def adafactor(engine: Engine, each: Each, loop: str) -> None:
    """One torch.optim.Adafactor.step().

    forloop     an update of one parameter's size, alive until the next one is there; a vector has
                the square of its gradient beside it, which stays until the next vector's
    foreach     the updates of all matrices at once, and while they stay those of all vectors
    Source      torch/optim/_adafactor.py, torch 2.13
    """
    make_states(engine, each, _states)
    if loop == "foreach":
        _all_at_once(engine, each)
    else:
        _one_by_one(engine, each)


def _states(p: Parameter) -> Sequence[Made]:
    """transformers and torch agree on what is factored: the last two dimensions."""
    step: Made = ("step", (), "fp32")
    if len(p.shape) < 2:
        return [step, ("variance", p.shape, p.dtype)]
    return [step, ("row_var", _row(p), p.dtype), ("col_var", _column(p), p.dtype)]


def _is(factored: bool, p: Parameter) -> bool:
    return (len(p.shape) > 1) == factored


def _row(p: Parameter) -> tuple[int, ...]:
    return (*p.shape[:-1], 1)


def _column(p: Parameter) -> tuple[int, ...]:
    return (*p.shape[:-2], 1, p.shape[-1])


def _corner(p: Parameter) -> tuple[int, ...]:
    return (*p.shape[:-2], 1, 1)


def _one_by_one(engine: Engine, each: Each) -> None:
    row: Tensor | None = None
    column: Tensor | None = None
    squared: Tensor | None = None
    update: Tensor | None = None
    for p in each():
        engine.new("norm", (), p.dtype)
        if len(p.shape) > 1:
            row = engine.new("norm", _row(p), p.dtype)
            column = engine.new("norm", _column(p), p.dtype)
            estimate = engine.new("matmul", p.shape, p.dtype)
            engine.new("mean", _corner(p), p.dtype)
        else:
            squared = engine.new("mul", p.shape, p.dtype)
            estimate = engine.new("clone", p.shape, p.dtype)
        update = estimate
        del estimate
        engine.new("norm", (), p.dtype)
    del row, column, squared, update


def _all_at_once(engine: Engine, each: Each) -> None:
    last: Temporaries | None = None  # the updates of one kind stay until the next are there
    kinds = [len(p.shape) > 1 for p in each()]
    for factored in sorted(set(kinds), key=kinds.index):  # the kind of the first one comes first
        group = those(each, partial(_is, factored))
        one = engine.new("one", (), "fp32")  # what the step counters are raised by
        del one
        if factored:
            Temporaries(engine, group, lambda p: ("norm", _row(p), p.dtype)).drop()
            Temporaries(engine, group, lambda p: ("norm", _column(p), p.dtype)).drop()
            updates = Temporaries(engine, group, lambda p: ("matmul", p.shape, p.dtype))
            Temporaries(engine, group, lambda p: ("mean", _corner(p), p.dtype)).drop()
        else:
            Temporaries(engine, group, lambda p: ("foreach_mul", p.shape, p.dtype)).drop()
            updates = Temporaries(engine, group, lambda p: ("clone", p.shape, p.dtype))
        if last is not None:
            last.drop()
        last = updates
    if last is not None:
        last.drop()
