"""transformers' olmo: norms without parameters, and queries, keys and values that may be cut.

Source      transformers: models/olmo/modeling_olmo.py
"""

from __future__ import annotations

from ..adapters.lora import linear
from ..core.graph import Tensor
from .gpt_parts import layer_norm
from .hf_llama import HFLlama, Shapes, Weights

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any


class Fp32Rotary(HFLlama):
    """Positions turn queries and keys in fp32, whatever these are, and make them narrow again."""

    @property
    def narrow_keys(self) -> list[bool]:
        """Layers whose keys autocast leaves narrow, as a cache keeps them: all."""
        return [True] * self.setting.model.layers

    def rotary(self, dtype: str) -> Any:
        return super().rotary("fp32")

    def rotate(self, q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
        f = self.f
        turned_q, turned_k = super().rotate(q, k, cos, sin)
        return f.to(turned_q, q.dtype), f.to(turned_k, k.dtype)


class Olmo(Fp32Rotary):
    """Mirrors OlmoForCausalLM."""

    def norm_shapes(self) -> Shapes:
        return {}

    def final_weights(self) -> Weights:
        return {}

    def normed(self, x: Tensor, w: Weights, name: str) -> Tensor:
        """In fp32, and then as narrow as before."""
        f = self.f
        return f.to(layer_norm(f, f.to(x, "fp32"), {}, name), x.dtype)

    def projected(
        self, w: Weights, x: Tensor, masked: bool, turns: bool = True
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Rows are cut, and seen as heads, when all three are there."""
        f, s = self.f, self.setting
        q, k, v = (linear(f, x, w, name) for name in "qkv")
        if (s.extra or {}).get("clip_qkv") is not None:
            q, k, v = (f.clamp_in_place(y) for y in (q, k, v))
        q = self.apart(q, "q", s.N)
        k = self.apart(k, "k", s.K)
        v = self.apart(v, "v", s.K, masked=masked)
        return q, k, v
