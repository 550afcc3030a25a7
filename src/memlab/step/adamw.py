"""AdamW's step: its states in the first step, its temporaries in every one."""

from __future__ import annotations

from collections.abc import Iterator

from .engine import Engine
from .graph import Parameter

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any


def step(engine: Engine, layers: int, implementation: str) -> None:
    """One AdamW.step(): make missing states, then update.

    forloop     two temporaries of each parameter's size, the last one kept until the next: sqrt of
                the second moment, and that over the bias correction
    foreach     the square roots of all second moments at once; all further work is in place
    fused       nothing beside the states
    Source      torch/optim/adam.py, torch 2.13
    """
    for parameter in _in_order(engine, layers):
        _make_states(engine, parameter)
    if implementation == "forloop":
        last: list[Any] = []
        for parameter in _in_order(engine, layers):
            if parameter.node is not None:
                temporaries = [
                    engine.new(name, parameter.shape, parameter.dtype) for name in ("sqrt", "div")
                ]
                last = temporaries[1:]
                del temporaries
        last.clear()
    elif implementation == "foreach":
        one = engine.new("one", (), "fp32")  # what the step counters are raised by
        del one
        first = len(engine.log.events)
        roots = [
            engine.new("foreach_sqrt", p.shape, p.dtype)
            for p in _in_order(engine, layers)
            if p.node is not None
        ]
        engine.log.undo(first)
        del roots


def step_elsewhere(engine: Engine, layers: int) -> None:
    """One step with the states on a host and those of one parameter at a time on the device."""
    for parameter in _in_order(engine, layers):
        if parameter.node is not None:
            _step_one_elsewhere(engine, parameter)


def _step_one_elsewhere(engine: Engine, parameter: Parameter) -> None:
    """AdamW([parameter]).step() between its states' arrival and their leaving; the counter stays.

    Source      memlab.lab.elsewhere.Elsewhere
    """
    shape, dtype = parameter.shape, parameter.dtype
    if not parameter.state:
        parameter.state = [engine.new("step", (), "fp32", "optimizer").storage]
    here = [engine.new(name, shape, dtype, "optimizer") for name in ("exp_avg", "exp_avg_sq")]
    temporaries = [engine.new(name, shape, dtype) for name in ("sqrt", "div")]
    del temporaries, here


def step_one(engine: Engine, parameter: Parameter, implementation: str) -> None:
    """AdamW([parameter]).step() as soon as the gradient is complete, which is dropped then.

    Source      memlab.lab.fused_backward; torch/optim/adam.py with a list of one parameter
    """
    _make_states(engine, parameter)
    if implementation == "forloop":
        root = engine.new("sqrt", parameter.shape, parameter.dtype)
        engine.new("div", parameter.shape, parameter.dtype)
        del root
    elif implementation == "foreach":
        engine.new("one", (), "fp32")
        engine.new("foreach_sqrt", parameter.shape, parameter.dtype)
    parameter.grad = None


def zero_grad(engine: Engine, layers: int) -> None:
    """Drop all gradients."""
    for parameter in _in_order(engine, layers):
        parameter.grad = None


def _make_states(engine: Engine, parameter: Parameter) -> None:
    """The counter and the two moments of a parameter that is trained, unless it has them."""
    if parameter.node is not None and not parameter.state:
        parameter.state = [
            engine.new(name, shape, dtype, "optimizer").storage
            for name, shape, dtype in (
                ("step", (), "fp32"),
                ("exp_avg", parameter.shape, parameter.dtype),
                ("exp_avg_sq", parameter.shape, parameter.dtype),
            )
        ]


def _in_order(engine: Engine, layers: int) -> Iterator[Parameter]:
    """Parameters in the order of registration, the layers between the simulated ones included."""
    inside = [p for p in engine.parameters if p.layer is not None]
    start = engine.parameters.index(inside[0])
    yield from engine.parameters[:start]
    for layer in engine.each_layer(layers):
        yield from (parameter for parameter in inside if parameter.layer == layer)
    yield from (p for p in engine.parameters[start:] if p.layer is None)
