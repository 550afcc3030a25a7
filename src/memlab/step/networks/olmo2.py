"""transformers' olmo2: norms after attention and feed-forward, and on q and k of all heads at once.

Source      transformers: models/olmo2/modeling_olmo2.py
"""

from __future__ import annotations

from ..adapters.lora import linear
from ..core.graph import Tensor, call
from .hf_llama import Shapes, Weights
from .olmo import Fp32Rotary

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any


class Olmo2(Fp32Rotary):
    """Mirrors Olmo2ForCausalLM.

    The norms multiply in fp32 and only then make the result as narrow as the input; so do
    positions, whose angles stay in fp32.
    """

    def attention_shapes(self) -> Shapes:
        s = self.setting
        return super().attention_shapes() | {"q_norm": (s.queries,), "k_norm": (s.keys,)}

    def norm(self, x: Tensor, weight: Tensor) -> Tensor:
        f = self.f
        hidden = f.to(x, "fp32")
        variance = f.mean(f.square(hidden))
        hidden = f.mul(hidden, f.rsqrt(f.shift(variance)))
        return f.to(f.mul(weight, hidden), x.dtype)

    def layer(
        self, x: Tensor, w: Weights, angles: Any, mask: Tensor | None, positions: Tensor
    ) -> Tensor:
        f = self.f
        residual = x
        hidden, kept = call(self.attention, w, x, angles, mask)
        hidden = call(self.norm, hidden, w["attention_norm"])
        hidden = f.add(residual, hidden)
        residual = hidden
        hidden = call(self.feed_forward, w, hidden)
        hidden = call(self.norm, hidden, w["feed_forward_norm"])
        hidden = f.add(residual, hidden)
        del kept
        return hidden

    def projected(
        self, w: Weights, x: Tensor, masked: bool, turns: bool = True
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The norms are of rows of all heads, before these are taken apart."""
        f, s = self.f, self.setting
        q = call(self.norm, linear(f, x, w, "q"), w["q_norm"])
        k = call(self.norm, linear(f, x, w, "k"), w["k_norm"])
        v = linear(f, x, w, "v")
        q, k = self.apart(q, "q", s.N, turns=turns), self.apart(k, "k", s.K, turns=turns)
        return q, k, self.apart(v, "v", s.K, masked=masked)
