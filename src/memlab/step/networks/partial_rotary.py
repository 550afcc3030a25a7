"""Heads of which positions turn only the first part, R of H values: phi3 and glm4.

Source      transformers: models/phi3/modeling_phi3.py, apply_rotary_pos_emb
"""

from __future__ import annotations

from ..core.graph import Tensor
from ..core.storage_log import Dim
from ..keys import rotary_share
from .hf_llama import HFLlama


class PartialRotary(HFLlama):
    """What turns and what passes are joined again, so that heads lie one after the other.

    R           the width that turns: an even number, often half of H
    """

    rows = False

    def turned(self) -> Dim:
        s = self.setting
        share = rotary_share(s.model.family, s.extra or {})
        return Dim("R", 2 * -(-int(s.H * share) // 2))

    def rotate(self, q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
        f = self.f
        q_rot, q_pass = self.cut(q)
        k_rot, k_pass = self.cut(k)
        q_new = f.cat([self.spun(q_rot, cos, sin), q_pass])
        return q_new, f.cat([self.spun(k_rot, cos, sin), k_pass])

    def spun(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        f = self.f
        return f.add(f.mul(x, cos), f.mul(self.rotate_half(x), sin))

    def cut(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """x[..., :R] and x[..., R:]; all of x is x itself."""
        f, B, N, T, H = self.f, *x.shape
        R = self.rotary_width
        first = f.view(x, *x.shape) if R == H else f.part_of(x, B, N, T, R)
        return first, f.part_of(x, B, N, T, H - R)
