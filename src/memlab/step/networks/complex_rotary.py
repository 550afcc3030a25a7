"""Positions that turn pairs of values as complex numbers: deepseek_v2.

Source      transformers: models/deepseek_v2/modeling_deepseek_v2.py, apply_rotary_emb
"""

from __future__ import annotations

from ..core.graph import Grads, Tensor
from ..ops import Ops


def polar(f: Ops, rates: Tensor, tokens: int) -> Tensor:
    """One complex number for each token and pair: torch.polar(1, position · rate), scaled."""
    shape = (1, tokens, rates.shape[0])
    wide = f.new("to", (1, tokens, 1), "fp32")
    frequencies = f.new("mul", shape, "fp32")
    del wide
    ones = f.new("ones_like", shape, "fp32")
    angles = f.new("polar", shape, "complex64")
    del ones
    angles = f.new("mul", shape, "complex64")
    del frequencies
    return angles


def turned(f: Ops, x: Tensor, angles: Tensor) -> Tensor:
    """x in fp32, seen as complex numbers, times the angles: as large as x.

    The gradient is a product with the conjugate of the angles, which is written out first.
    """
    out = f.new("mul", x.shape, "fp32")
    shape, table = x.shape, angles.shape  # not the angles: what is kept of them may be elsewhere

    def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
        conjugate = f.new("conj_physical", table, "complex64")
        made = f.new("mul", shape, "fp32")
        del conjugate
        return [made]

    f.apply("mul", [x], [out], run, [("other", angles)])
    return out
