"""transformers' GPT-NeoX: models/gpt_neox/modeling_gpt_neox.py of release 5.23, on the CPU."""

from __future__ import annotations

from ..core.graph import Tensor, call
from ..core.setting import Setting
from ..core.storage_log import Dim
from ..keys import rope_type
from ..kv_cache import Cache
from ..ops import Ops
from .attention import attend
from .gpt_parts import (
    Weights,
    counted_positions,
    layer_norm,
    linear,
    linear_weights,
    norm_weights,
    own_mask,
    pieces,
    reordered,
)
from .hf_common import dropout, head_loss
from .scaled_rotary import Scaled

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

ACTIVATIONS = ("gelu", "gelu_pytorch_tanh", "relu", "silu")


class GPTNeoX:
    """Mirrors GPTNeoXForCausalLM.

    R           the width of a head that rotary turns, often a quarter of H
    Raises      ValueError for an activation function that is not described
    """

    def __init__(self, f: Ops, s: Setting) -> None:
        self.f, self.setting = f, s
        self.cache: Cache | None = None
        extra, m = s.extra or {}, s.model
        self.act = extra.get("hidden_act", "gelu")
        if self.act not in ACTIVATIONS:
            raise ValueError(
                f"hidden_act={self.act!r} is not described; known: {', '.join(ACTIVATIONS)}"
            )
        self.parallel = extra.get("use_parallel_residual", True)
        rates = -(-int(s.H * rotary_share(extra)) // 2)
        self.R = Dim("R", 2 * rates)
        self.embedding = f.parameter("embedding", (s.V, s.D), s.dtype)
        self.layers = [self.layer_weights() for _ in f.each_layer(s.L)]
        self.final = norm_weights(f, s, "final_norm")
        if m.tied:
            self.lm_head = f.tied_head(self.embedding)
        else:
            self.lm_head = f.parameter("lm_head", (s.V, s.D), s.dtype)
        self.rates = [f.new("inv_freq", (rates,), "fp32", "buffers") for _ in range(2)]
        self.scaled = Scaled(f, s, self.rates)

    def layer_weights(self) -> Weights:
        f, s, m = self.f, self.setting, self.setting.model
        w = norm_weights(f, s, "attention_norm") | norm_weights(f, s, "feed_forward_norm")
        w |= linear_weights(f, s, "qkv", Dim("3·D", 3 * s.D), s.D, m.qkv_bias)
        w |= linear_weights(f, s, "out", s.D, s.D, m.out_bias)
        w |= linear_weights(f, s, "up", s.F, s.D, m.ff_bias)
        return w | linear_weights(f, s, "down", s.D, s.F, m.ff_bias)

    def forward(self, ids: Tensor) -> Tensor:
        x = call(self.body, ids)
        return head_loss(self.f, self.setting, x, self.lm_head)

    def body(self, ids: Tensor) -> Tensor:
        f, s = self.f, self.setting
        embeds = f.embedding(self.embedding, ids)
        if s.checkpoint:
            f.require_grad(embeds)  # gradient_checkpointing_enable asks for it
        position_ids = counted_positions(f, s, ids)
        mask = own_mask(f, s, positions=True)
        x = dropout(f, embeds, s.residual_dropout)
        angles = call(self.angles, x.dtype)
        region = f.region(s.checkpoint)
        for i in f.each_layer(s.L):
            x = region(self.layer, x, self.layers[i], mask, angles, position_ids)
            x = f.boundary(x, i, s.L)
        x = layer_norm(f, x, self.final, "final_norm")
        del position_ids
        return x

    def angles(self, dtype: str) -> tuple[Tensor, Tensor]:
        f, s, half = self.f, self.setting, Dim("R/2", self.R // 2)
        self.scaled.update()
        wide = f.new("to", (1, s.T, 1), "fp32")
        rates = f.new("mul", (1, s.T, half), "fp32")
        del wide
        angle = f.cat([rates, rates])
        cos = f.scale(f.new("cos", angle.shape, "fp32"))
        sin = f.scale(f.new("sin", angle.shape, "fp32"))
        return f.to(cos, dtype), f.to(sin, dtype)

    def layer(
        self,
        x: Tensor,
        w: Weights,
        mask: Tensor | None,
        angles: tuple[Tensor, Tensor],
        position_ids: Tensor,  # not used, but a checkpoint keeps them with the rest
    ) -> Tensor:
        f, p = self.f, self.setting.residual_dropout
        attended, _ = call(self.attention, w, layer_norm(f, x, w, "attention_norm"), mask, angles)
        attended = dropout(f, attended, p)
        if self.parallel:
            fed = call(self.mlp, w, layer_norm(f, x, w, "feed_forward_norm"))
            fed = dropout(f, fed, p)
            return f.add(f.add(fed, attended), x)
        attended = f.add(attended, x)
        fed = call(self.mlp, w, layer_norm(f, attended, w, "feed_forward_norm"))
        fed = dropout(f, fed, p)
        return f.add(fed, attended)

    def mlp(self, w: Weights, x: Tensor) -> Tensor:
        f = self.f
        hidden = linear(f, x, w, "up")
        hidden = f.activation(hidden, "gelu" if self.act.startswith("gelu") else self.act)
        return linear(f, hidden, w, "down")

    def attention(
        self, w: Weights, x: Tensor, mask: Tensor | None, angles: tuple[Tensor, Tensor]
    ) -> Any:
        f, s = self.f, self.setting
        qkv = linear(f, x, w, "qkv")
        qkv = reordered(f, qkv, s.B, s.N, s.T, Dim("3·H", 3 * s.H), copies=s.N > 1)
        query, key, value = pieces(f, qkv, 3)
        query, key = self.rotate(query, key, *angles)
        if self.cache is not None:
            key, value = self.cache.update(key, value)
        y, weights = attend(f, s, query, key, value, mask, rows=False)
        return linear(f, y, w, "out"), weights

    def rotate(self, q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
        """The first R of H; the rest passes."""
        f = self.f
        q_rot, q_pass = self.cut(q)
        k_rot, k_pass = self.cut(k)
        q_new = f.add(f.mul(q_rot, cos), f.mul(self.turned(q_rot), sin))
        k_new = f.add(f.mul(k_rot, cos), f.mul(self.turned(k_rot), sin))
        q_new = f.cat([q_new, q_pass])
        k_new = f.cat([k_new, k_pass])
        return q_new, k_new

    def cut(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """x[..., :R] and x[..., R:]; all of x is x itself."""
        f, B, N, T, H = self.f, *x.shape
        first = f.view(x, *x.shape) if self.R == H else f.part_of(x, B, N, T, self.R)
        return first, f.part_of(x, B, N, T, H - self.R)

    def turned(self, x: Tensor) -> Tensor:
        f, shape = self.f, (*x.shape[:-1], self.R // 2)
        first, second = f.part_of(x, *shape), f.part_of(x, *shape)
        return f.cat([f.neg(second), first])


def rotary_share(extra: Mapping[str, Any]) -> float:
    """The share of a head that rotary turns, by either of the keys that configs use."""
    if rope_type(extra) == "proportional":  # turns all of it, much of it by nothing
        return 1.0
    rope = extra.get("rope_parameters") or extra.get("rope_scaling") or {}
    return float(rope.get("partial_rotary_factor", extra.get("rotary_pct", 0.25)))
