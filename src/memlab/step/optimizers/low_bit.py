"""torchao's AdamW with states in 8 or 4 bits: one parameter after the other, each by itself."""

from __future__ import annotations

from ...terms.optimizer import QUANTIZED, STEP_BYTES, block_state
from ...terms.optimizer_step import low_bit_room
from ..core.engine import Engine
from .each import Each, Made

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ..core.graph import Parameter


def adamw8bit(engine: Engine, each: Each, loop: str) -> None:
    """One torchao.optim.AdamW8bit.step()."""
    _update(engine, each, loop, "adamw8bit")


def adamw4bit(engine: Engine, each: Each, loop: str) -> None:
    """One torchao.optim.AdamW4bit.step()."""
    _update(engine, each, loop, "adamw4bit")


def adamw_fp8(engine: Engine, each: Each, loop: str) -> None:
    """One torchao.optim.AdamWFp8.step()."""
    _update(engine, each, loop, "adamw_fp8")


def _update(engine: Engine, each: Each, loop: str, kind: str) -> None:
    """What one update takes for a moment is one temporary here, of the bytes that its formula says.

    Source      memlab.terms.optimizer_step, from torchao/optim 0.18
    """
    stored, table = QUANTIZED[kind]

    def states(p: Parameter) -> Sequence[Made]:
        size = block_state(p.shape, stored=stored, format=p.dtype, table=table)
        moments: list[Any] = [(name, (size,), "uint8") for name in ("exp_avg", "exp_avg_sq")]
        return [("step", (STEP_BYTES // 4,), "fp32"), *moments]

    for p in each():
        if not p.state:
            p.state = [engine.new(*made, "optimizer").storage for made in states(p)]
        size = low_bit_room(p.shape, kind=kind, format=p.dtype, compiled=loop == "compiled")
        engine.new("single_param_adam", (size,), "uint8")
