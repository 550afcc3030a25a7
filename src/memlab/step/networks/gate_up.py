"""A feed-forward layer whose gate and up are one matrix, as phi3 and glm4 have it.

Source      transformers: models/phi3/modeling_phi3.py, Phi3MLP
"""

from __future__ import annotations

from ..adapters.lora import linear
from ..core.graph import Tensor, call
from ..core.storage_log import Dim
from .hf_llama import HFLlama, Shapes, Weights


class GateUp(HFLlama):
    """gate and up are halves of one output, whose gradients are joined again in one copy."""

    def feed_forward_shapes(self, layer: int) -> Shapes:
        s, bias = self.setting, self.setting.model.ff_bias
        both = Dim("2·F", 2 * s.F)
        return s.linear("gate_up", both, s.D, bias) | s.linear("down", s.D, s.F, bias)

    def feed_forward(self, w: Weights, x: Tensor, part: str = "") -> Tensor:
        f = self.f
        up = call(linear, f, x, w, "gate_up")
        gate, up = f.halves(up)
        up = f.mul(up, call(f.activation, gate, self.activation))
        return call(linear, f, up, w, "down")
