"""transformers' gpt_oss: sinks beside the scores, windows in every second layer, biased experts.

Source      transformers: models/gpt_oss/modeling_gpt_oss.py, which has eager attention alone
            among those that every torch can run
Leaves out  flash attention by a kernel of the hub
"""

from __future__ import annotations

from ..adapters.experts import weight, with_adapters
from ..core.graph import Tensor, call
from ..core.storage_log import Dim
from .experts import Qwen3Moe
from .hf_common import dropout, strided
from .hf_llama import Shapes, Weights
from .masks import causal_mask

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Sequence


class GptOss(Qwen3Moe):
    """GptOssForCausalLM."""

    is_transposed = True

    def attention_shapes(self) -> Shapes:
        return {"sinks": (self.setting.N,)} | super().attention_shapes()

    def feed_forward_shapes(self, layer: int) -> Shapes:
        """Experts are stored [inputs, outputs], and have biases, as their router has."""
        s, double, X = self.setting, Dim("2·M", 2 * self.setting.M), self.experts_here
        router: Shapes = {"router": (s.X, s.D), "router.bias": (s.X,)}
        experts: Shapes = {"experts_up": (X, s.D, double), "experts_up.bias": (X, double)}
        experts |= {"experts_down": (X, s.M, s.D), "experts_down.bias": (X, s.D)}
        return with_adapters(s.lora, router) | with_adapters(s.lora, experts, rows=True)

    def masks(self, dtype: str) -> Sequence[Tensor | None]:
        """Both are always made, without a look whether texts are packed."""
        f, s = self.f, self.setting
        full, near = causal_mask(f, s, dtype), causal_mask(f, s, dtype, s.window)
        assert s.sliding is not None
        return [near if slides else full for slides in s.sliding] + [full, near]

    def rotary(self, dtype: str) -> tuple[Tensor, Tensor]:
        """Angles of half a head: the other half has the same."""
        f, s = self.f, self.setting
        self.scaled.update()
        half = (1, s.T, self.rates[0].shape[0])
        wide = f.new("to", (1, s.T, 1), "fp32")
        frequencies = f.new("mul", half, "fp32")
        del wide
        tables = []
        for name in ("cos", "sin"):
            table = f.new(name, half, "fp32")
            tables.append(f.scale(table))
            del table
        cos, sin = f.to(tables[0], dtype), f.to(tables[1], dtype)
        del frequencies
        return cos, sin

    def rotate(self, q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
        turned = call(self.turn, q, cos, sin)
        return turned, call(self.turn, k, cos, sin)

    def turn(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        f = self.f
        first, second = f.halves(x, self.rates[0].shape[0])
        one = f.subtract(f.mul(first, cos), f.mul(second, sin))
        two = f.add(f.mul(second, cos), f.mul(first, sin))
        return f.cat([one, two])

    def layer(
        self,
        x: Tensor,
        w: Weights,
        angles: tuple[Tensor, Tensor],
        mask: Tensor | None,
        positions: Tensor,
    ) -> Tensor:
        """Its feed-forward layer gives the weights of the experts back, too."""
        f = self.f
        residual = x
        hidden = call(self.norm, x, w["attention_norm"])
        hidden, kept = call(self.attention, w, hidden, angles, mask)
        hidden = f.add(residual, hidden)
        residual = hidden
        hidden = call(self.norm, hidden, w["feed_forward_norm"])
        hidden, kept = call(self.weighted, w, hidden)
        hidden = f.add(residual, hidden)
        del kept
        return hidden

    def norm(self, x: Tensor, weight: Tensor) -> Tensor:
        f = self.f
        hidden = f.to(x, "fp32")
        variance = f.mean(f.square(hidden))
        hidden = f.mul(hidden, f.rsqrt(f.shift(variance)))
        return f.to(f.mul(weight, hidden), x.dtype)

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        return call(self.sink_attention, q, k, v, mask, self.sinks)  # type: ignore[no-any-return]

    def attention(
        self, w: Weights, x: Tensor, angles: tuple[Tensor, Tensor], mask: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        self.sinks = w["sinks"]
        return super().attention(w, x, angles, mask)

    def sink_attention(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor, sinks: Tensor
    ) -> tuple[Tensor, Tensor]:
        """One more score in each row, which takes its share of the softmax and is dropped."""
        f, s = self.f, self.setting
        keys, values = f.repeat_heads(k, s.N), f.repeat_heads(v, s.N)
        apart = k.shape[1] == 1 and strided(f, s, k, keys)  # joined halves lie head by head
        weights = f.scale(f.matmul(q, keys, keys.shape[2], strided=(False, apart)))
        weights = f.add(weights, mask)
        scores = f.cat([weights, f.expanded(sinks, s.B, s.N, s.T, 1)])
        scores = f.subtract(scores, f.largest(scores))
        shares = f.softmax(scores)
        tokens = f.part_of(shares, s.B, s.N, s.T, keys.shape[2])
        weights = f.to(dropout(f, tokens, s.attention_dropout), values.dtype)
        out = f.matmul(weights, values, s.H, strided=(False, strided(f, s, v, values)))
        if s.N > 1 and s.T > 1:
            if s.B > 1:
                out = f.folded(out)
            out = f.copy(out)
        return out, weights

    def weighted(self, w: Weights, x: Tensor) -> tuple[Tensor, Tensor]:
        f, s = self.f, self.setting
        rows = f.view(x, s.rows, s.D)
        _, scores, chosen = self.routed(w, rows)
        y = call(self.experts, w, rows, chosen, scores)
        return f.view(y, s.B, s.T, s.D), scores

    def router(self, w: Weights, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The best logits first, then their softmax."""
        f, s = self.f, self.setting
        matrix = weight(f, w, "router")
        logits = f.linear(rows, matrix, w["router.bias"])
        best, chosen = f.topk(logits, s.k)
        return logits, f.softmax(best), chosen

    def bias(self, w: Weights, name: str, by_expert: Tensor) -> Tensor | None:
        return self.f.rows_of(w[f"{name}.bias"], by_expert)

    def gate(self, y: Tensor) -> Tensor:
        """Gate and up are every second value; both are cut, and the gate weighs itself."""
        f, half = self.f, (*y.shape[:-1], self.setting.M)
        gate, up = f.part_of(y, *half), f.part_of(y, *half)
        gate = f.clamp(gate)
        up = f.clamp(up, both=True)
        shared = f.mul(gate, f.activation(f.scale(gate), "sigmoid"))
        return f.mul(f.shift(up), shared)
