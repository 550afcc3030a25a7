"""transformers' granite: a llama whose embedding, branches and logits are multiplied by numbers.

Source      transformers: models/granite/modeling_granite.py
"""

from __future__ import annotations

from ..core.graph import Tensor, call
from .hf_llama import HFLlama, Weights

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any


class Granite(HFLlama):
    """Mirrors GraniteForCausalLM. A product with a number is made even where that is 1."""

    def scaled_embeds(self, embeds: Tensor) -> Tensor:
        return self.f.scale(embeds)

    def logits(self, hidden: Tensor) -> Tensor:
        logits = super().logits(hidden)
        logits = self.f.scale(logits, "div")
        return logits

    def layer(
        self, x: Tensor, w: Weights, angles: Any, mask: Tensor | None, positions: Tensor
    ) -> Tensor:
        f = self.f
        residual = x
        hidden = call(self.norm, x, w["attention_norm"])
        hidden, kept = call(self.attention, w, hidden, angles, mask)
        hidden = f.add(residual, f.scale(hidden))
        residual = hidden
        hidden = call(self.norm, hidden, w["feed_forward_norm"])
        hidden = call(self.feed_forward, w, hidden)
        hidden = f.add(residual, f.scale(hidden))
        del kept
        return hidden
