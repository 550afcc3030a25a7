"""transformers' Adafactor, which Trainer(optim="adafactor") takes: all of it in fp32."""

from __future__ import annotations

from ..core.engine import Engine
from ..core.graph import Parameter, Tensor
from ..core.storage_log import Storage
from .each import Each


def hf_adafactor(engine: Engine, each: Each, loop: str) -> None:
    """One transformers.optimization.Adafactor.step() without scale_parameter and relative_step.

    A name of the real code keeps its tensor until the next parameter has one: gradient and weights
    in fp32 where they are narrow, the update.

    Source      transformers, optimization.py; trainer_optimizer.py for the arguments
    """
    grad: Tensor | None = None
    wide: Tensor | None = None
    update: Tensor | None = None
    for p in each():
        narrow = p.dtype != "fp32"
        if narrow:
            grad = engine.new("to", p.shape, "fp32")
        if not p.state:
            p.state = [_state(engine, shape) for shape in _shapes(p)]
        if narrow:
            wide = engine.new("to", p.shape, "fp32")
        _rms(engine, p)
        squared = engine.new("pow", p.shape, "fp32")
        made = engine.new("add", p.shape, "fp32")
        update = made
        del squared, made
        if len(p.shape) > 1:
            for shape in _shapes(p):
                engine.new("mean", shape, "fp32")
            made = _approximated(engine, p)
        else:
            made = engine.new("rsqrt", p.shape, "fp32")
        update = made
        del made
        norm = engine.new("norm", (), "fp32")
        rms = engine.new("div", (), "fp32")
        del norm
        clipped = engine.new("div", (), "fp32")
        del rms, clipped
        engine.new("neg", p.shape, "fp32")
    del grad, wide, update


def _state(engine: Engine, shape: tuple[int, ...]) -> Storage:
    return engine.new("zeros", shape, "fp32", "optimizer").storage


def _shapes(p: Parameter) -> list[tuple[int, ...]]:
    """A mean of each row and one of each column, or one of each value."""
    if len(p.shape) < 2:
        return [p.shape]
    return [p.shape[:-1], (*p.shape[:-2], p.shape[-1])]


def _rms(engine: Engine, p: Parameter) -> None:
    """The size of the weights, one number, in the place of that of the last step."""
    norm = engine.new("norm", (), "fp32")
    new = engine.new("rms", (), "fp32", "optimizer")
    del norm
    kept = len(_shapes(p))
    p.state[kept:] = [new.storage]


def _approximated(engine: Engine, p: Parameter) -> Tensor:
    """_approx_sq_grad: a column of factors times a row of factors."""
    rows, columns = _shapes(p)
    mean = engine.new("mean", (*rows[:-1], 1), "fp32")
    by_row = engine.new("div", rows, "fp32")
    del mean
    by_column = engine.new("rsqrt", columns, "fp32")
    made = engine.new("mul", p.shape, "fp32")
    del by_row, by_column
    return made
