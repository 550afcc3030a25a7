"""transformers' qwen2_moe: beside its experts one that every token passes.

Source      transformers: models/qwen2_moe/modeling_qwen2_moe.py
"""

from __future__ import annotations

from ..adapters.lora import linear
from ..core.graph import Tensor, call
from .experts import Qwen3Moe
from .hf_llama import Shapes, Weights
from .masks import mask_of

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Sequence


class Qwen2Moe(Qwen3Moe):
    """Qwen2MoeForCausalLM: beside its experts one that every token passes, weighed by a gate."""

    router_first = True
    cache_first = False

    def feed_forward_shapes(self, layer: int) -> Shapes:
        s, shapes = self.setting, super().feed_forward_shapes(layer)
        if layer in s.model.dense_layers:
            return shapes
        return shapes | self.shared_shapes() | s.linear("shared_router", 1, s.D, False)

    def masks(self, dtype: str) -> Sequence[Tensor | None]:
        """Both are always made, whether a layer has the window or not; without one it is 0."""
        f, s = self.f, self.setting
        full, near = mask_of(f, s, dtype, None), mask_of(f, s, dtype, s.window or 0)
        return [near if slides else full for slides in s.sliding or [False] * s.L] + [full, near]

    def mixture(self, w: Weights, rows: Tensor) -> Tensor:
        f = self.f
        shared = call(self.feed_forward, w, rows, "shared_")
        _, scores, chosen = self.routed(w, rows)
        y = call(self.experts, w, rows, chosen, scores)
        shared = f.mul(f.activation(linear(f, rows, w, "shared_router"), "sigmoid"), shared)
        y = f.add(y, shared)
        return y
