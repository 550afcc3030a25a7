"""SGD, with and without momentum: everything is done in place."""

from __future__ import annotations

from ..core.engine import Engine
from .each import Each, make_states


def sgd(engine: Engine, each: Each, loop: str) -> None:
    """One torch.optim.SGD.step(): no state, no temporary, in any of its loops.

    Source      torch/optim/sgd.py, torch 2.13, with weight_decay=0
    """


def momentum(engine: Engine, each: Each, loop: str) -> None:
    """One torch.optim.SGD(momentum=...).step(): the first gradient is copied, and stays.

    Source      torch/optim/sgd.py, torch 2.13, with weight_decay=0 and nesterov=False
    """
    make_states(engine, each, lambda p: [("momentum_buffer", p.shape, p.dtype)])
