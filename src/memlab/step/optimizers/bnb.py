"""bitsandbytes' AdamW: states in 8 or 32 bits, in torch's memory or paged by the driver.

On CUDA one kernel a parameter works in place. On a CPU its code is written in torch's operators, in
fp32, and pages nothing.

Source      bitsandbytes: optim/optimizer.py, backends/cuda/ops.py, backends/cpu/ops.py
"""

from __future__ import annotations

from ...run.loops import TRAINERS
from ...terms.optimizer import BNB_BLOCK, BNB_PAGED, SMALLEST_QUANTIZED, numel
from ..core.engine import Engine
from ..core.graph import Parameter, Tensor, component
from .each import Each, Made

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Sequence

# The modules that transformers' Trainer keeps in fp32: trainer.py, create_optimizer.
EMBEDDINGS = ("embedding", "positions")


def bnb_adamw8bit(engine: Engine, each: Each, loop: str) -> None:
    """One bitsandbytes.optim.AdamW8bit.step()."""
    _update(engine, each, loop, bits=8)


def bnb_adamw(engine: Engine, each: Each, loop: str) -> None:
    """One bitsandbytes.optim.AdamW.step()."""
    _update(engine, each, loop, bits=32)


def bnb_paged_adamw8bit(engine: Engine, each: Each, loop: str) -> None:
    """One bitsandbytes.optim.PagedAdamW8bit.step()."""
    _update(engine, each, loop, bits=8, paged=True)


def bnb_paged_adamw(engine: Engine, each: Each, loop: str) -> None:
    """One bitsandbytes.optim.PagedAdamW.step()."""
    _update(engine, each, loop, bits=32, paged=True)


def _update(engine: Engine, each: Each, loop: str, *, bits: int, paged: bool = False) -> None:
    for p in each():
        wide = bits == 32 or numel(p.shape) < SMALLEST_QUANTIZED or _kept_wide(engine, p)
        if not p.state:
            away = paged and numel(p.shape) >= BNB_PAGED
            made = _states(p, wide, away)
            p.state = [engine.new(*one, "optimizer").storage for one in made]
        if loop == "forloop":
            (_in_32_bits if wide else _in_8_bits)(engine, p)


def _kept_wide(engine: Engine, p: Parameter) -> bool:
    """Whether the program asked for fp32 states, as Trainer does for each torch.nn.Embedding."""
    return engine.program in TRAINERS and component(p.record.op) in EMBEDDINGS


def _states(p: Parameter, wide: bool, paged: bool) -> Sequence[Made]:
    """What torch's allocator counts: the driver's pages are not among it."""
    names = () if paged else ("state1", "state2")
    if wide:
        return [(name, p.shape, "fp32") for name in names]
    blocks = -(-numel(p.shape) // BNB_BLOCK)
    codes: list[Made] = [(name, p.shape, "uint8") for name in names]
    return [*codes, ("absmax1", (blocks,), "fp32"), ("absmax2", (blocks,), "fp32")]


def _in_8_bits(engine: Engine, p: Parameter) -> None:
    """_optimizer_update_8bit_blockwise_cpu: everything in fp32 until the function returns."""
    means = [engine.new("dequantize_blockwise", p.shape, "fp32") for _ in range(2)]
    scaled, weights = _widened(engine, p)
    root = engine.new("sqrt", p.shape, "fp32")
    below = engine.new("div", p.shape, "fp32")
    del root
    for _ in means:
        codes = engine.new("quantize_blockwise", p.shape, "uint8")
        largest = engine.new("quantize_blockwise", (-(-numel(p.shape) // BNB_BLOCK),), "fp32")
        del codes, largest
    del below, scaled, weights


def _in_32_bits(engine: Engine, p: Parameter) -> None:
    """_optimizer_update_32bit_cpu."""
    scaled, weights = _widened(engine, p)
    root = engine.new("sqrt", p.shape, "fp32")
    below = engine.new("add", p.shape, "fp32")
    del root
    update = engine.new("div", p.shape, "fp32")
    del below
    del update, scaled, weights


def _widened(engine: Engine, p: Parameter) -> tuple[Tensor, Tensor | None]:
    """The gradient times its scale, and the weights; what is fp32 already is not copied."""
    narrow = p.dtype != "fp32"
    wide = engine.new("to", p.shape, "fp32") if narrow else None
    scaled = engine.new("mul", p.shape, "fp32")
    del wide
    return scaled, engine.new("to", p.shape, "fp32") if narrow else None
