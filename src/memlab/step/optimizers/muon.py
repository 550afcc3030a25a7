"""Muon for the matrices inside the network, AdamW for everything else."""

from __future__ import annotations

from ..core.engine import Engine
from ..core.graph import Parameter, Tensor, component
from . import adamw
from .each import Each, make_states, those

ROUNDS = 5  # torch/optim/_muon.py, DEFAULT_NS_STEPS


def muon(engine: Engine, each: Each, loop: str) -> None:
    """One torch.optim.Muon.step(), then one of torch.optim.AdamW in the loop that it takes.

    Muon's own loop is always parameter by parameter.

    Source      torch/optim/_muon.py, torch 2.13; memlab.lab.optim.beside_adamw
    """
    hidden = those(each, is_hidden)
    make_states(engine, hidden, lambda p: [("momentum_buffer", p.shape, p.dtype)])
    update: Tensor | None = None
    for p in hidden():
        ahead = engine.new("lerp", p.shape, p.dtype)
        update = ahead
        del ahead
        update = _orthogonal(engine, update)
    del update
    adamw.adamw(engine, those(each, lambda p: not is_hidden(p)), loop)


def is_hidden(p: Parameter) -> bool:
    """A matrix of attention or of a feed-forward layer: no router, and not the experts' biases."""
    name = p.record.op
    inside = component(name) in ("attention", "feed_forward") and "router" not in name
    return inside and len(p.shape) == 2 and not name.endswith("bias")


def _orthogonal(engine: Engine, ahead: Tensor) -> Tensor:
    """_zeropower_via_newtonschulz: on the wide side of the matrix, in bf16."""
    side = min(ahead.shape)
    x = ahead if ahead.dtype == "bf16" else engine.new("to", ahead.shape, "bf16")
    norm = engine.new("norm", (), "bf16")
    engine.new("clamp", (), "bf16")
    del norm
    gram: Tensor | None = None
    change: Tensor | None = None
    for _ in range(ROUNDS):
        gram = engine.new("mm", (side, side), "bf16")
        change = engine.new("addmm", (side, side), "bf16")
        x = engine.new("addmm", x.shape, "bf16")
    del gram, change
    return x
