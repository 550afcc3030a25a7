"""transformers' gemma: a scaled embedding, norms in fp32 to the end, gelu at the gate.

Source      transformers: models/gemma/modeling_gemma.py
"""

from __future__ import annotations

from ..core.graph import Tensor
from .hf_llama import HFLlama


class Gemma(HFLlama):
    """Mirrors GemmaForCausalLM."""

    activation = "gelu"

    def embedding_buffers(self) -> None:
        self.scale = self.f.new("embed_scale", (), self.setting.dtype, "buffers")

    def embed(self, ids: Tensor) -> Tensor:
        f = self.f
        x = f.embedding(self.embedding, ids)
        return f.mul(x, f.to(self.scale, self.setting.dtype))

    def norm(self, x: Tensor, weight: Tensor) -> Tensor:
        """By 1 + weight, which is made wide; only then as narrow as the input."""
        f = self.f
        wide = f.to(x, "fp32")
        normal = f.mul(wide, f.rsqrt(f.shift(f.mean(f.square(wide)))))
        del wide
        normal = f.mul(normal, f.shift(f.to(weight, "fp32")))
        return f.to(normal, x.dtype)
