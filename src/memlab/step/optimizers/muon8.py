"""Muon with its momentum in 8 bits, as memlab.lab.muon8 has it, beside AdamW."""

from __future__ import annotations

from ...terms.optimizer import SMALLEST_QUANTIZED, numel
from ..core.engine import Engine
from ..core.graph import Parameter, Tensor
from . import adamw
from .each import Each, those
from .muon import ROUNDS, is_hidden

BLOCK = 128  # memlab.lab.muon8


def muon8(engine: Engine, each: Each, loop: str) -> None:
    """One memlab.lab.muon8.Muon8.step(), then one of torch.optim.AdamW in the loop that it takes.

    Source      memlab.lab.muon8; memlab.lab.optim.beside_adamw
    """
    for p in those(each, is_hidden)():
        _one(engine, p)
    adamw.adamw(engine, those(each, lambda p: not is_hidden(p)), loop)


def _one(engine: Engine, p: Parameter) -> None:
    ahead = _ahead(engine, p)
    _orthogonal(engine, ahead)


def _ahead(engine: Engine, p: Parameter) -> Tensor:
    """Widen the momentum, add the gradient, round it back."""
    zeros = engine.new("zeros_like", p.shape, p.dtype)
    kept = p.state
    first = not kept
    small = numel(p.shape) < SMALLEST_QUANTIZED or numel(p.shape) % BLOCK > 0
    mean = zeros
    if not first:
        del zeros
        mean = Tensor(p.shape, p.dtype, kept[0]) if small else engine.new("mul", p.shape, "fp32")
    if mean.dtype != p.dtype:
        engine.new("to", p.shape, mean.dtype)  # the gradient
    if not small:
        p.state = [made.storage for made in _narrow(engine, mean)]
    elif first:
        mean.record.category = "optimizer"
        p.state = [mean.storage]
    narrow = engine.new("to", p.shape, p.dtype) if mean.dtype != p.dtype else None
    ahead = engine.new("lerp", p.shape, p.dtype)
    del narrow, kept
    return ahead


def _narrow(engine: Engine, values: Tensor) -> list[Tensor]:
    """A code for each value, a scale for each block."""
    rows = values if values.dtype == "fp32" else engine.new("to", values.shape, "fp32")
    scaled = (numel(values.shape) // BLOCK, 1)
    sizes = engine.new("abs", rows.shape, "fp32")
    largest = engine.new("amax", scaled, "fp32")
    del sizes
    scales = engine.new("div", scaled, "fp32", "optimizer")
    del largest
    above = engine.new("gt", scaled, "bool")
    divisors = engine.new("where", scaled, "fp32")
    del above
    quotients = engine.new("div", rows.shape, "fp32")
    del divisors
    codes = engine.new("to", rows.shape, "uint8", "optimizer")
    del quotients
    return [codes, scales]


def _orthogonal(engine: Engine, ahead: Tensor) -> None:
    """memlab.lab.muon8.orthogonal, which names no intermediate but the Gram matrix."""
    side = min(ahead.shape)
    x = ahead if ahead.dtype == "bf16" else engine.new("to", ahead.shape, "bf16")
    norm = engine.new("norm", (), "bf16")
    least = engine.new("clamp", (), "bf16")
    del norm
    x = engine.new("div", x.shape, "bf16")
    del least
    gram: Tensor | None = None
    for _ in range(ROUNDS):
        gram = engine.new("mm", (side, side), "bf16")
        change = engine.new("addmm", (side, side), "bf16")
        x = engine.new("addmm", x.shape, "bf16")
        del change
    del gram
