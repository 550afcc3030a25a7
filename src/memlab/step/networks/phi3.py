"""transformers' phi3: q, k and v in one matrix, gate and up in another, dropout of the stream.

Source      transformers: models/phi3/modeling_phi3.py
"""

from __future__ import annotations

from ..adapters.lora import linear
from ..core.graph import Tensor, call
from ..core.storage_log import Dim
from .gate_up import GateUp
from .hf_common import dropout
from .hf_llama import Shapes, Weights
from .partial_rotary import PartialRotary

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any


class Phi3(GateUp, PartialRotary):
    """Mirrors Phi3ForCausalLM."""

    def attention_shapes(self) -> Shapes:
        s, m = self.setting, self.setting.model
        out = s.linear("out", s.D, s.queries, m.out_bias)  # registered first
        return out | s.linear("qkv", self.width, s.D, m.qkv_bias)

    @property
    def width(self) -> Dim:
        """Of one row of queries, keys and values."""
        return Dim("(N+2·K)·H", self.setting.queries + 2 * self.setting.keys)

    def layer(
        self, x: Tensor, w: Weights, angles: Any, mask: Tensor | None, positions: Tensor
    ) -> Tensor:
        f = self.f
        residual = x
        hidden = call(self.norm, x, w["attention_norm"])
        hidden, kept = call(self.attention, w, hidden, angles, mask)
        hidden = f.add(residual, call(self.stream_dropout, hidden))
        residual = hidden
        hidden = call(self.norm, hidden, w["feed_forward_norm"])
        hidden = call(self.feed_forward, w, hidden)
        hidden = f.add(residual, call(self.stream_dropout, hidden))
        del kept
        return hidden

    def stream_dropout(self, x: Tensor) -> Tensor:
        return dropout(self.f, x, self.setting.residual_dropout)

    def attention(
        self, w: Weights, x: Tensor, angles: Any, mask: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        f, s = self.f, self.setting
        qkv = linear(f, x, w, "qkv")
        q = f.part_of(qkv, s.B, s.T, s.queries)
        k = f.part_of(qkv, s.B, s.T, s.keys)
        v = f.part_of(qkv, s.B, s.T, s.keys)
        q = self.apart(q, "q", s.N)
        k = self.apart(k, "k", s.K)
        v = self.apart(v, "v", s.K, masked=mask is not None)
        q, k = call(self.rotate, q, k, *angles)
        if self.cache is not None:
            k, v = self.cache.update(k, v)
        y, kept = self.attend(q, k, v, mask)
        y = f.view(y, s.B, s.T, s.queries)
        y = linear(f, y, w, "out")
        return y, kept
