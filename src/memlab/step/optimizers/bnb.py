"""bitsandbytes' AdamW with states in 8 bits: one kernel a parameter, which works in place."""

from __future__ import annotations

from ...terms.optimizer import BNB_BLOCK, SMALLEST_QUANTIZED, numel
from ..engine import Engine
from ..graph import Parameter
from .each import Each, Made

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Sequence


def bnb_adamw8bit(engine: Engine, each: Each, loop: str) -> None:
    """One bitsandbytes.optim.AdamW8bit.step() on CUDA: nothing beside the states.

    Source      bitsandbytes 0.50, optim/optimizer.py and backends/cuda/ops.py
    """
    for p in each():
        if not p.state:
            p.state = [engine.new(*made, "optimizer").storage for made in _states(p)]


def _states(p: Parameter) -> Sequence[Made]:
    count = numel(p.shape)
    if count < SMALLEST_QUANTIZED:
        return [(name, p.shape, "fp32") for name in ("state1", "state2")]
    blocks = -(-count // BNB_BLOCK)
    codes: list[Made] = [(name, p.shape, "uint8") for name in ("state1", "state2")]
    return [*codes, ("absmax1", (blocks,), "fp32"), ("absmax2", (blocks,), "fp32")]
