"""transformers' gemma3_text: gemma2 with norms on q and k and a table of angles for each kind.

Source      transformers: models/gemma3/modeling_gemma3.py
"""

from __future__ import annotations

from ..adapters.lora import linear
from ..core.graph import Tensor, call
from .gemma2 import Gemma2
from .hf_llama import HFLlama, Weights

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any


class Gemma3(Gemma2):
    """Mirrors Gemma3ForCausalLM. Its scores are not capped, so SDPA takes them too."""

    def rotary_buffers(self) -> None:
        sliding = self.setting.sliding
        assert sliding is not None  # windows() says the kind of each layer
        self.kinds = sorted(set(sliding))
        every = []
        for _ in self.kinds:
            super().rotary_buffers()
            every += self.rates
        self.every = every

    def rotary(self, dtype: str) -> Any:
        angles = {}
        for kind in self.kinds:
            angles[kind] = call(super().rotary, dtype)
        return angles

    def angles_of(self, angles: Any, layer: int) -> Any:
        assert self.setting.sliding is not None
        return angles[self.setting.sliding[layer]]

    def projected(
        self, w: Weights, x: Tensor, masked: bool, turns: bool = True
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The norms come after all three products, so that all three are there at once."""
        f, s = self.f, self.setting
        q = self.apart(linear(f, x, w, "q"), "q", s.N, turns=turns)
        k = self.apart(linear(f, x, w, "k"), "k", s.K, turns=turns)
        v = self.apart(linear(f, x, w, "v"), "v", s.K, masked=masked)
        q = call(self.norm, q, w["q_norm"])
        k = call(self.norm, k, w["k_norm"])
        return q, k, v

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        return HFLlama.attend(self, q, k, v, mask)
