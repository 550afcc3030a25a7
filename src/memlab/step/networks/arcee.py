"""transformers' arcee: a llama whose feed-forward layer is the square of a ReLU, without a gate.

Source      transformers: models/arcee/modeling_arcee.py; activations.py:
            ReLUSquaredActivation
"""

from __future__ import annotations

from ..adapters.lora import linear
from ..core.graph import Tensor, call
from .hf_llama import HFLlama, Shapes, Weights


class Arcee(HFLlama):
    """Mirrors ArceeForCausalLM."""

    def feed_forward_shapes(self, layer: int) -> Shapes:
        s, bias = self.setting, self.setting.model.ff_bias
        return s.linear("up", s.F, s.D, bias) | s.linear("down", s.D, s.F, bias)

    def feed_forward(self, w: Weights, x: Tensor, part: str = "") -> Tensor:
        f = self.f
        return call(linear, f, call(self.squared, linear(f, x, w, "up")), w, "down")

    def squared(self, x: Tensor) -> Tensor:
        """ReLU keeps its result, and the square its input: under CUDA's autocast a copy in fp32.

        Source      aten/src/ATen/autocast_mode.h, AT_FORALL_FP32
        """
        f = self.f
        above = f.activation(x, "relu")
        wide = f.to(above, "fp32") if f.autocast and f.backend == "cuda" else above
        squared = f.square(wide)
        return squared
