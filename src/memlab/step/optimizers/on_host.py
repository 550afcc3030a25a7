"""An optimizer whose states, and whose update, are a host's: gradients go out, weights come in."""

from __future__ import annotations

from ...terms.optimizer import numel
from ..core.engine import Engine
from ..core.graph import Parameter
from . import adamw
from .each import Each, those

SMALLEST_MOVED = 4096  # torchao/optim/cpu_offload.py: minimal_size


def on_host(engine: Engine, each: Each, loop: str) -> None:
    """One torchao.optim.CPUOffloadOptimizer.step(), of torch.optim.AdamW.

    On the device stay the parameters of fewer than 4,096 values, with a fused AdamW of their own.
    All others are updated where their states are, and copied over the old ones in place.

    Source      torchao, torchao/optim/cpu_offload.py
    """
    adamw.adamw(engine, those(each, _stays), "fused")


def let_go(parameter: Parameter) -> None:
    """offload_gradients=True: a gradient leaves as soon as it is complete."""
    if not _stays(parameter):
        parameter.grad = None


def _stays(parameter: Parameter) -> bool:
    return numel(parameter.shape) < SMALLEST_MOVED
