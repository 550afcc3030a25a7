"""transformers' cohere2: attention and feed-forward side by side, windows where positions turn.

Source      transformers: models/cohere2/modeling_cohere2.py
"""

from __future__ import annotations

from ..core.graph import Tensor, call
from .gemma2 import FullAndSlidingMasks
from .hf_llama import Weights
from .smollm3 import RotaryInSomeLayers

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any


class Cohere2(FullAndSlidingMasks, RotaryInSomeLayers):
    """Mirrors Cohere2ForCausalLM: one norm for both parts, and logits times a number."""

    norms = ("attention_norm",)

    @property
    def narrow_keys(self) -> list[bool]:
        """Layers whose keys autocast leaves narrow: all, turned ones are made so again."""
        return [True] * self.setting.model.layers

    def logits(self, hidden: Tensor) -> Tensor:
        logits = super().logits(hidden)
        logits = self.f.scale(logits)
        return logits

    def norm(self, x: Tensor, weight: Tensor) -> Tensor:
        """LayerNorm written out in fp32, without a bias."""
        f = self.f
        hidden = f.to(x, "fp32")
        mean = f.mean(hidden)
        variance = f.mean(f.square(f.sub(hidden, mean)))
        hidden = f.mul(f.sub(hidden, mean), f.rsqrt(f.shift(variance)))
        hidden = f.mul(f.to(weight, "fp32"), hidden)
        return f.to(hidden, x.dtype)

    def layer(
        self, x: Tensor, w: Weights, angles: Any, mask: Tensor | None, positions: Tensor
    ) -> Tensor:
        f = self.f
        hidden = call(self.normed, x, w, "attention_norm")
        attended, kept = call(self.attention, w, hidden, angles, mask)
        fed = call(self.feed_forward, w, hidden)
        hidden = f.add(f.add(x, attended), fed)
        del kept
        return hidden

    def rotate(
        self, q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, turns: bool = True
    ) -> tuple[Tensor, Tensor]:
        """In fp32, and then as narrow as before."""
        if not turns:
            return q, k
        f = self.f
        wide_q, wide_k = f.to(q, "fp32"), f.to(k, "fp32")
        q_new = f.add(f.mul(wide_q, cos), f.mul(self.rotate_half(wide_q), sin))
        k_new = f.add(f.mul(wide_k, cos), f.mul(self.rotate_half(wide_k), sin))
        return f.to(q_new, q.dtype), f.to(k_new, k.dtype)
