"""transformers' glm4: four norms, gate and up in one matrix, neighbours turn with each other.

Source      transformers: models/glm4/modeling_glm4.py
"""

from __future__ import annotations

from ..core.graph import Tensor
from .four_norms import FourNorms
from .gate_up import GateUp
from .partial_rotary import PartialRotary


class Glm4(FourNorms, GateUp, PartialRotary):
    """Mirrors Glm4ForCausalLM.

    Positions turn the first half of each head, value 0 with value 1, 2 with 3 …, so each layer
    spreads the angles anew.
    """

    def rotate(self, q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
        f = self.f
        wide_cos = f.new("repeat_interleave", cos.shape, cos.dtype)
        wide_sin = f.new("repeat_interleave", sin.shape, sin.dtype)
        q_rot, q_pass = self.cut(q)
        k_rot, k_pass = self.cut(k)
        q_new = self.spun(q_rot, wide_cos, wide_sin)
        k_new = self.spun(k_rot, wide_cos, wide_sin)
        q_new = f.cat([q_new, q_pass])
        k_new = f.cat([k_new, k_pass])
        return q_new, k_new
