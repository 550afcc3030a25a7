"""transformers' glm4_moe: half of each head turns; experts in groups, first layers without.

Source      transformers: models/glm4_moe/modeling_glm4_moe.py
"""

from __future__ import annotations

from ..adapters.lora import linear
from ..core.graph import Tensor, call
from .grouped_router import GroupedRouter
from .hf_llama import Weights
from .partial_rotary import PartialRotary


class Glm4Moe(PartialRotary, GroupedRouter):
    """Glm4MoeForCausalLM: queries and keys are normed when values are there too."""

    def projected(
        self, w: Weights, x: Tensor, masked: bool, turns: bool = True
    ) -> tuple[Tensor, Tensor, Tensor]:
        f, s = self.f, self.setting
        q = self.apart(linear(f, x, w, "q"), "q", s.N)
        k = self.apart(linear(f, x, w, "k"), "k", s.K)
        v = self.apart(linear(f, x, w, "v"), "v", s.K, masked=masked)
        if "q_norm" in w:
            q = call(self.norm, q, w["q_norm"])
            k = call(self.norm, k, w["k_norm"])
        return q, k, v

    def rotate(self, q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
        """Both turn before either is joined with what passes."""
        f = self.f
        q_rot, q_pass = self.cut(q)
        k_rot, k_pass = self.cut(k)
        q_new, k_new = self.spun(q_rot, cos, sin), self.spun(k_rot, cos, sin)
        q_new = f.cat([q_new, q_pass])
        k_new = f.cat([k_new, k_pass])
        return q_new, k_new
