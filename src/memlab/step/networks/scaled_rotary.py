"""Rotary bases that transformers looks at again in every forward pass: dynamic and longrope.

The others (linear, llama3, yarn, proportional) are scaled once, when the model is built, and cost
what the plain one costs.

Source      transformers: modeling_rope_utils.py, dynamic_rope_update
"""

from __future__ import annotations

from ..core.graph import Tensor
from ..core.setting import Setting
from ..keys import rope_type
from ..ops import Ops


class Scaled:
    """What the rotary module of a network remembers from one forward pass to the next.

    rates       the buffers inv_freq and original_inv_freq
    """

    def __init__(self, f: Ops, s: Setting, rates: list[Tensor]) -> None:
        self.f, self.s, self.rates = f, s, rates
        self.kind = rope_type(s.extra or {})
        self.long: Tensor | None = None  # frequencies for long texts
        self.longest: Tensor | None = None  # tokens of the longest text so far, once it was longer

    def update(self) -> None:
        """Before the angles are computed."""
        if self.kind == "longrope":
            self.choose(self.length())
        elif self.kind == "dynamic":
            self.grow(self.length())

    def length(self) -> Tensor:
        highest = self.f.new("max", (), "int64")
        length = self.f.new("add", (), "int64")
        del highest
        return length

    def choose(self, length: Tensor) -> None:
        """longrope: one of two sets of frequencies, copied into the buffer; both stay."""
        f, shape = self.f, self.rates[0].shape
        if self.long is None:
            self.long = f.new("long_inv_freq", shape, "fp32")
        longer = f.new("gt", (), "bool")
        picked = f.new("where", shape, "fp32")
        del longer, picked

    def grow(self, length: Tensor) -> None:
        """dynamic: new frequencies, and the length they are for, once a text is too long."""
        f, s = self.f, self.s
        longer = f.new("gt", (), "bool")
        del longer
        if self.longest is None and s.T > s.model.positions:
            self.rates[0] = f.new("inv_freq", self.rates[0].shape, "fp32", "buffers")
            self.longest = length
        shorter = f.new("lt", (), "bool")
        del shorter
