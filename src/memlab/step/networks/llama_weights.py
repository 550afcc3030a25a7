"""The parameters of a llama's layers, in the order in which transformers registers them."""

from __future__ import annotations

from ..core.graph import Tensor
from ..core.setting import Setting
from ..ops import Ops

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Sequence

Weights = dict[str, Tensor]
Shapes = dict[str, tuple[int, ...]]


class LlamaWeights:
    """What a layer is made of; a family overrides the part that is its own.

    norms       of a layer, those on queries and keys aside
    """

    f: Ops
    setting: Setting
    norms: Sequence[str] = ("attention_norm", "feed_forward_norm")

    def layer_weights(self, layer: int) -> Weights:
        f, s = self.f, self.setting
        shapes = self.attention_shapes() | self.feed_forward_shapes(layer) | self.norm_shapes()
        return {name: f.parameter(name, shape, s.dtype_of(name)) for name, shape in shapes.items()}

    def attention_shapes(self) -> Shapes:
        s, m = self.setting, self.setting.model
        shapes: Shapes = {}
        for name, outputs in {"q": s.queries, "k": s.keys, "v": s.keys}.items():
            shapes |= s.linear(name, outputs, s.D, m.qkv_bias)
        shapes |= s.linear("out", s.D, s.queries, m.out_bias)
        return shapes | ({"q_norm": (s.H,), "k_norm": (s.H,)} if m.qk_norm else {})

    def feed_forward_shapes(self, layer: int) -> Shapes:
        s, bias = self.setting, self.setting.model.ff_bias
        shapes: Shapes = {}
        for name in ("gate", "up"):
            shapes |= s.linear(name, s.F, s.D, bias)
        return shapes | s.linear("down", s.D, s.F, bias)

    def norm_shapes(self) -> Shapes:
        return {name: (self.setting.D,) for name in self.norms}

    def final_weights(self) -> Weights:
        s = self.setting
        return {"final_norm": self.f.parameter("final_norm", (s.D,), s.dtype)}
