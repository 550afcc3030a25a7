"""GaLore for the matrices inside the network, AdamW for everything else."""

from __future__ import annotations

from functools import partial

from ..core.engine import Engine
from ..core.graph import Parameter, Tensor
from . import adamw
from .each import Each, those
from .muon import is_hidden


def galore(engine: Engine, each: Each, loop: str, rank: int) -> None:
    """One memlab.lab.galore.GaLore.step(), then one of torch.optim.AdamW in the loop that it takes.

    The first step chooses the directions, by a singular value decomposition; so does every 200th.

    Source      memlab.lab.galore, which is small enough to read and no library
    """
    for p in those(each, is_hidden)():
        _one(engine, p, rank)
    adamw.adamw(engine, those(each, lambda p: not is_hidden(p)), loop)


def of_rank(rank: int) -> partial[None]:
    """`galore` with that many directions."""
    return partial(galore, rank=rank)


def _one(engine: Engine, p: Parameter, rank: int) -> None:
    short, long = sorted(p.shape)
    shape = (min(rank, short), long)
    if not p.state:
        states = [engine.new("new_zeros", shape, p.dtype, "optimizer") for _ in range(2)]
        basis = _directions(engine, p, shape[0])
        p.state = [made.storage for made in (*states, basis)]
        del states, basis
    low = engine.new("matmul", shape, p.dtype)
    mean = engine.new("div", shape, p.dtype)
    root = engine.new("div", shape, p.dtype)
    update = engine.new("matmul", p.shape, p.dtype)
    del low, mean, root, update


def _directions(engine: Engine, p: Parameter, rank: int) -> Tensor:
    """memlab.lab.galore.directions: those of the largest singular values, in fp32."""
    short, long = sorted(p.shape)
    wide = engine.new("to", p.shape, "fp32") if p.dtype != "fp32" else None
    u = engine.new("svd", (short, short), "fp32")
    values = engine.new("svd", (short,), "fp32")
    v = engine.new("svd", (short, long), "fp32")
    del wide, values
    narrow = engine.new("to", (short, rank), p.dtype) if p.dtype != "fp32" else None
    basis = engine.new("clone", (short, rank), p.dtype, "optimizer")
    del narrow, u, v
    return basis
