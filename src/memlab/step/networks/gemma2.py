"""transformers' gemma2: four norms, capped scores and logits, windows in every second layer.

Source      transformers: models/gemma2/modeling_gemma2.py
"""

from __future__ import annotations

from ..core.graph import Tensor
from ..keys import caps
from .four_norms import FourNorms
from .gemma import Gemma
from .hf_common import eager_shared_heads
from .hf_llama import HFLlama
from .masks import mask_of

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Sequence


class FullAndSlidingMasks(HFLlama):
    """A mask without a window and one with it, made whether a layer asks for them or not."""

    def masks(self, dtype: str) -> Sequence[Tensor | None]:
        f, s = self.f, self.setting
        assert s.sliding is not None  # windows() says the kind of each layer
        full, near = mask_of(f, s, dtype, None), mask_of(f, s, dtype, s.window)
        return [near if slides else full for slides in s.sliding] + [full, near]


class Ministral(FullAndSlidingMasks):
    """Mirrors MinistralForCausalLM: a llama whose layers may have windows one by one."""


class Gemma2(FullAndSlidingMasks, FourNorms, Gemma):
    """Mirrors Gemma2ForCausalLM, whose attention is eager: SDPA knows no cap."""

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        f, s = self.f, self.setting
        assert mask is not None
        cap = caps(s.model, "attn_logit_softcapping")
        return eager_shared_heads(f, s, q, k, v, mask, cap=cap)

    def logits(self, hidden: Tensor) -> Tensor:
        f = self.f
        logits = super().logits(hidden)
        if caps(self.setting.model, "final_logit_softcapping"):
            logits = f.scale(logits, "div")
            logits = f.tanh(logits)
            logits = f.scale(logits)
        return logits
