"""Lion: the sign of a running mean, written out for one parameter after the other."""

from __future__ import annotations

from ..core.engine import Engine
from ..core.graph import Parameter, Tensor
from .each import Each


def lion(engine: Engine, each: Each, loop: str) -> None:
    """One memlab.lab.optim.Lion.step(): an update of each parameter's size, kept until the next.

    Source      memlab.lab.optim; Chen et al. 2023, arXiv:2302.06675
    """
    update: Tensor | None = None
    for parameter in each():
        if not parameter.state:
            parameter.state = [engine.new("zeros_like", *_like(parameter), "optimizer").storage]
        made = engine.new("lerp", parameter.shape, parameter.dtype)
        update = made
        del made
    del update


def _like(p: Parameter) -> tuple[tuple[int, ...], str]:
    return p.shape, p.dtype
