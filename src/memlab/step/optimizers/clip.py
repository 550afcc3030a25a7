"""The norm of all gradients, and their scaling in place."""

from __future__ import annotations

from ..core.engine import Engine
from ..core.graph import Tensor
from .each import Each, Temporaries


def clipped(engine: Engine, each: Each) -> Tensor:
    """torch.nn.utils.clip_grad_norm_: returns the norm, a scalar in the format of the gradients.

    Formula     one number for each parameter, once by itself and once in a stack of all
    Source      torch, torch/nn/utils/clip_grad.py: _get_total_norm, _clip_grads_with_norm_
    """
    dtype = next(each()).dtype
    norms = Temporaries(engine, each, lambda p: ("foreach_norm", (), p.dtype))
    stack = Temporaries(engine, each, lambda p: ("stack", (), p.dtype))  # one tensor, in parts
    if engine.sharded:  # DTensors: the stack is raised, summed over the ranks, and its root taken
        powers = Temporaries(engine, each, lambda p: ("pow", (), p.dtype))
        sums = Temporaries(engine, each, lambda p: ("all_reduce", (), p.dtype))
        roots = Temporaries(engine, each, lambda p: ("pow", (), p.dtype))
        sums.drop()
        powers.drop()
        total = engine.new("vector_norm", (), dtype)
        roots.drop()
    else:
        total = engine.new("vector_norm", (), dtype)
    stack.drop()
    norms.drop()
    shifted = engine.new("add", (), dtype)
    inverse = engine.new("reciprocal", (), dtype)
    coefficient = engine.new("mul", (), dtype)
    del shifted, inverse
    clamped = engine.new("clamp", (), dtype)
    del coefficient, clamped
    return total
