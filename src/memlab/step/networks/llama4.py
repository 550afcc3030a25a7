"""transformers' llama4_text: chunks of tokens, layers without positions, experts for every token.

Every expert computes every token, each weighed by its score, which is zero where the expert was not
chosen: the rows of a layer of experts are X times as many as its tokens.

Source      transformers: models/llama4/modeling_llama4.py, Llama4ForCausalLM
Leaves out  pictures: Llama4ForConditionalGeneration
"""

from __future__ import annotations

from ..adapters.experts import EXPERTS, weight, with_adapters, wrapped
from ..adapters.lora import linear
from ..core.graph import Tensor, call
from ..core.storage_log import Dim
from .attention import scores_kept, splits_joined
from .complex_rotary import polar, turned
from .experts import Qwen3Moe
from .hf_common import eager_shared_heads
from .hf_llama import Shapes, Weights
from .masks import mask_of
from .smollm3 import RotaryInSomeLayers

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


class Llama4(RotaryInSomeLayers, Qwen3Moe):
    """Mirrors Llama4ForCausalLM."""

    cache_first = False

    @property
    def narrow_keys(self) -> list[bool]:
        """Layers whose keys autocast leaves narrow: all, turned ones are made so again."""
        return [True] * self.setting.model.layers

    def feed_forward_shapes(self, layer: int) -> Shapes:
        s = self.setting
        if layer in s.model.dense_layers:
            return super().feed_forward_shapes(layer)
        experts: Shapes = {"experts_up": (s.X, s.D, Dim("2·M", 2 * s.M))}
        experts |= {"experts_down": (s.X, s.M, s.D)}
        return with_adapters(s.lora, experts) | {"router": (s.X, s.D)} | self.shared_shapes()

    def masks(self, dtype: str) -> Sequence[Tensor | None]:
        """Both are always made, whether a layer asks for them or not."""
        f, s = self.f, self.setting
        assert s.sliding is not None  # windows() says the kind of each layer
        full = mask_of(f, s, dtype, None)
        chunked = mask_of(f, s, dtype, s.window, chunked=True)
        return [chunked if each else full for each in s.sliding] + [full, chunked]

    def rotary(self, dtype: str) -> Any:
        self.scaled.update()
        return (polar(self.f, self.rates[0], self.setting.T),)

    def angles_of(self, angles: Any, layer: int) -> Any:
        return (*angles, self.turns[layer])

    def turns_by(self, angles: Any) -> bool:
        return bool(angles[1])

    def norm(self, x: Tensor, weight: Tensor) -> Tensor:
        output = self.unit(x)
        return self.f.mul(output, weight)

    def unit(self, x: Tensor) -> Tensor:
        """In fp32, divided by the root of the mean of its squares, and as narrow as before."""
        f = self.f
        return f.to(call(self.divided, f.to(x, "fp32")), x.dtype)

    def divided(self, x: Tensor) -> Tensor:
        f = self.f
        return f.mul(x, f.rsqrt(f.shift(f.mean(f.square(x)))))

    def attention(
        self, w: Weights, x: Tensor, angles: Any, mask: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        f, s, turns = self.f, self.setting, self.turns_by(angles)
        masked = mask is not None
        q = linear(f, x, w, "q")
        if not turns:
            q = self.apart(q, "q", s.N, masked=masked, turns=False)
        k = linear(f, x, w, "k")
        if not turns:
            k = self.apart(k, "k", s.K, masked=masked, turns=False)
        v = self.apart(linear(f, x, w, "v"), "v", s.K, masked=masked)
        if turns:
            q, k = call(self.turn_both, q, k, angles[0], masked)
            if self.normed_heads:
                q = call(self.unit, q)
                k = call(self.unit, k)
        elif (s.extra or {}).get("attn_temperature_tuning", True):
            held = self.scales()
            q = f.to(f.mul(q, held[1]), q.dtype)
        if self.cache is not None:
            k, v = self.cache.update(k, v)
        y, kept = self.attend(q, k, v, mask)
        y = f.view(y, s.B, s.T, s.queries)
        y = linear(f, y, w, "out")
        return y, kept

    @property
    def normed_heads(self) -> bool:
        """Whether queries and keys that are turned are made of length one."""
        return bool((self.setting.extra or {}).get("use_qk_norm", True))

    def turn_both(
        self, q: Tensor, k: Tensor, angles: Tensor, masked: bool
    ) -> tuple[Tensor, Tensor]:
        """Both are turned before either is as narrow as before."""
        f, s = self.f, self.setting
        wide_q, wide_k = f.to(q, "fp32"), f.to(k, "fp32")
        q_out = self.by_head(turned(f, wide_q, angles), "q", s.N, masked)
        k_out = self.by_head(turned(f, wide_k, angles), "k", s.K, masked)
        return f.to(q_out, q.dtype), f.to(k_out, k.dtype)

    def by_head(self, y: Tensor, name: str, heads: int, masked: bool) -> Tensor:
        """[B, heads, T, H]; a gradient that comes head by head is copied into rows.

        Even that of one head, where it is the key's: scores give it value by value.
        """
        f, s = self.f, self.setting
        repeats = masked and s.K < s.N and name == "k"
        joined = name == "k" and splits_joined(f, s, masked=masked)
        copied = repeats or joined or scores_kept(f, s, masked=masked)
        if copied and s.T > 1 and (heads > 1 or (name == "k" and s.N == 1)):
            y = f.folded(y)
        return f.view(y, s.B, heads, s.T, s.H)

    def scales(self) -> tuple[Tensor, Tensor]:
        """Positions, and a number for each from its logarithm: both live as long as the call."""
        f, s = self.f, self.setting
        positions = f.new("arange", (s.T,), "int64")
        positions = f.new("add", (s.T,), "int64")
        made = f.new("to", (s.T,), "fp32")
        for op in ("add", "div", "floor", "log1p", "mul", "add"):
            made = f.new(op, (s.T,), "fp32")
        return positions, f.view(made, 1, 1, s.T, 1)

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        if self.setting.attention != "eager":
            return super().attend(q, k, v, mask)
        assert mask is not None
        return eager_shared_heads(self.f, self.setting, q, k, v, mask, upcast=False)

    def layer(
        self, x: Tensor, w: Weights, angles: Any, mask: Tensor | None, positions: Tensor
    ) -> Tensor:
        """What attention gives is held to the end; experts give their logits, too."""
        f, s = self.f, self.setting
        residual = x
        hidden = call(self.normed, x, w, "attention_norm")
        attended, kept = call(self.attention, w, hidden, angles, mask)
        hidden = f.add(residual, attended)
        residual = hidden
        hidden = call(self.normed, hidden, w, "feed_forward_norm")
        if "router" in w:
            hidden, kept = call(self.mixed, w, hidden)
        else:
            hidden = call(self.feed_forward, w, hidden)
        hidden = f.add(residual, f.view(hidden, s.B, s.T, s.D))
        del kept, attended
        return hidden

    def mixed(self, w: Weights, x: Tensor) -> tuple[Tensor, Tensor]:
        """Llama4TextMoe: all tokens for each expert, and what is shared."""
        f, s = self.f, self.setting
        rows = Dim("X·B·T", s.X * s.rows)
        x = f.seen_as(x, s.rows, s.D)
        scores, logits = call(self.scored, w, x)
        routed = f.for_each(x, rows)
        weights = scores if s.X == 1 or s.rows == 1 else f.copy(scores)
        routed = f.mul(routed, f.view(weights, rows, 1))
        del weights
        routed_out = wrapped(f, w, EXPERTS, lambda w: call(self.every_expert, w, routed))
        out = call(self.feed_forward, w, x, "shared_")
        out = f.add_in_place(out, self.summed(routed_out))
        return out, logits

    def scored(self, w: Weights, x: Tensor) -> tuple[Tensor, Tensor]:
        f, s = self.f, self.setting
        logits = f.linear(x, w["router"])
        best, chosen = f.topk(logits, s.k)
        scores = f.scattered(best, chosen, s.X)
        scores = f.to(f.activation(f.to(scores, "fp32"), "sigmoid"), scores.dtype)
        return scores, logits

    def every_expert(self, w: Weights, x: Tensor) -> Tensor:
        f, s = self.f, self.setting
        matrix = weight(f, w, "experts_up")
        x = f.view(x, s.X, s.rows, s.D)
        both = f.bmm(x, matrix)
        gate, up = f.halves(both, s.M)
        act = f.mul(up, call(f.activation, gate, "silu"))
        down = weight(f, w, "experts_down")
        y = f.bmm(act, down)
        del act
        return f.view(y, Dim("X·B·T", s.X * s.rows), s.D)

    def summed(self, x: Tensor) -> Tensor:
        """Over experts; on CUDA autocast sums in fp32."""
        f, s = self.f, self.setting
        wide = "fp32" if f.autocast and f.backend == "cuda" else x.dtype
        out = f.new("sum", (s.rows, s.D), wide)
        shape, dtype = x.shape, x.dtype

        def run(grads: Any, saved: Any, needs: list[bool]) -> Any:
            g = grads[0] if grads[0].dtype == dtype else f.new("to", grads[0].shape, dtype)
            if s.X == 1 or s.rows == 1:
                return [f.view(g, *shape)]
            return [f.new("clone", shape, g.dtype)]

        f.apply("sum", [x], [out], run)
        return out
