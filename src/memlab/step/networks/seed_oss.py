"""transformers' seed_oss: a llama with dropout of what its two parts add to the stream.

Source      transformers: models/seed_oss/modeling_seed_oss.py
"""

from __future__ import annotations

from ..core.graph import Tensor
from .hf_common import dropout
from .hf_llama import HFLlama, Weights

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any


class SeedOss(HFLlama):
    """Mirrors SeedOssForCausalLM."""

    def attention(
        self, w: Weights, x: Tensor, angles: Any, mask: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        y, kept = super().attention(w, x, angles, mask)
        y = dropout(self.f, y, self.setting.residual_dropout)
        return y, kept

    def feed_forward(self, w: Weights, x: Tensor, part: str = "") -> Tensor:
        hidden = super().feed_forward(w, x)
        hidden = dropout(self.f, hidden, self.setting.residual_dropout)
        return hidden
