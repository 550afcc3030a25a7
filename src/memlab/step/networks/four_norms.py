"""A layer with norms before and after both of its parts: glm4, gemma2 and gemma3.

Source      transformers: models/gemma2/modeling_gemma2.py, Gemma2DecoderLayer
"""

from __future__ import annotations

from ..core.graph import Tensor, call
from .hf_llama import HFLlama, Weights

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any


class FourNorms(HFLlama):
    """What attention and feed-forward add to the stream is normed once more."""

    norms = (
        "attention_norm",
        "feed_forward_norm",
        "attention_out_norm",
        "feed_forward_out_norm",
    )

    def layer(
        self, x: Tensor, w: Weights, angles: Any, mask: Tensor | None, positions: Tensor
    ) -> Tensor:
        f = self.f
        residual = x
        hidden = call(self.normed, x, w, "attention_norm")
        hidden, kept = call(self.attention, w, hidden, angles, mask)
        hidden = call(self.normed, hidden, w, "attention_out_norm")
        hidden = f.add(residual, hidden)
        residual = hidden
        hidden = call(self.normed, hidden, w, "feed_forward_norm")
        hidden = call(self.feed_forward, w, hidden)
        hidden = call(self.normed, hidden, w, "feed_forward_out_norm")
        hidden = f.add(residual, hidden)
        del kept
        return hidden
