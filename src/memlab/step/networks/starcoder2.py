"""transformers' starcoder2: LayerNorm, a feed-forward layer without a gate, dropout of the stream.

Source      transformers: models/starcoder2/modeling_starcoder2.py
"""

from __future__ import annotations

from ..adapters.lora import linear
from ..core.graph import Tensor, call
from .gpt_parts import layer_norm, norm_weights
from .hf_common import dropout
from .hf_llama import HFLlama, Shapes, Weights

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any


class Starcoder2(HFLlama):
    """Mirrors Starcoder2ForCausalLM."""

    activation = "gelu"

    def final_weights(self) -> Weights:
        return {**norm_weights(self.f, self.setting, "final_norm")}

    def norm_shapes(self) -> Shapes:
        parts = [part for name in self.norms for part in (name, f"{name}.bias")]
        return {part: (self.setting.D,) for part in parts}

    def feed_forward_shapes(self, layer: int) -> Shapes:
        s, bias = self.setting, self.setting.model.ff_bias
        return s.linear("up", s.F, s.D, bias) | s.linear("down", s.D, s.F, bias)

    def normed(self, x: Tensor, w: Weights, name: str) -> Tensor:
        return layer_norm(self.f, x, w, name)

    def dropped(self, embeds: Tensor) -> Tensor:
        return dropout(self.f, embeds, self.setting.embedding_dropout)

    def attention(
        self, w: Weights, x: Tensor, angles: Any, mask: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        y, kept = super().attention(w, x, angles, mask)
        y = dropout(self.f, y, self.setting.residual_dropout)
        return y, kept

    def feed_forward(self, w: Weights, x: Tensor, part: str = "") -> Tensor:
        f = self.f
        hidden = linear(f, x, w, "up")
        hidden = call(f.activation, hidden, self.activation)
        hidden = linear(f, hidden, w, "down")
        hidden = dropout(f, hidden, self.setting.residual_dropout)
        return hidden
