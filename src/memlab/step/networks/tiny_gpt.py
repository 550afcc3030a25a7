"""memlab.lab's TinyGPT: the gpt2 family in plain torch."""

from collections.abc import Callable

from ..adapters.lora import linear
from ..core.graph import Parameter, Tensor, call
from ..core.setting import Setting
from ..core.storage_log import Dim
from ..loops.losses import chunked_next_token_loss
from ..ops import Ops
from .attention import in_rows, sdpa
from .hf_common import dropout
from .tiny_llama import next_token_loss


class TinyGPT:
    """Mirrors memlab.lab.models.gpt line by line."""

    def __init__(self, f: Ops, setting: Setting) -> None:
        self.f, self.setting = f, setting
        s, m, dtype = setting, setting.model, setting.dtype
        self.embedding = f.parameter("embedding", (s.V, s.D), dtype)
        positions = (Dim("positions", m.positions), s.D)
        self.positions = f.parameter("positions", positions, dtype)
        self.layers = [self._weights() for _ in f.each_layer(m.layers)]
        self.final_norm = [f.parameter("final_norm", (s.D,), dtype) for _ in range(2)]
        self.lm_head = self.embedding if m.tied else f.parameter("lm_head", (s.V, s.D), dtype)

    def _weights(self) -> dict[str, Parameter]:
        f, s, m = self.f, self.setting, self.setting.model
        shapes: dict[str, tuple[int, ...]] = norm("attention_norm", s.D)
        shapes |= s.linear("qkv", Dim("3·N·H", 3 * s.queries), s.D, m.qkv_bias)
        shapes |= s.linear("out", s.D, s.queries, m.out_bias)
        shapes |= norm("feed_forward_norm", s.D)
        shapes |= s.linear("up", s.F, s.D, m.ff_bias)
        shapes |= s.linear("down", s.D, s.F, m.ff_bias)
        return {name: f.parameter(name, shape, s.dtype_of(name)) for name, shape in shapes.items()}

    def forward(self, ids: Tensor) -> Tensor:
        f, layers, p = self.f, self.setting.model.layers, self.setting.residual_dropout
        positions = f.new("arange", (self.setting.T,), "int64")
        x = call(
            dropout,
            f,
            f.add(f.embedding(self.embedding, ids), f.embedding(self.positions, positions)),
            p,
        )
        region = f.region(self.setting.checkpoint)
        for i in f.each_layer(layers):
            x = region(self.layer, x, self.layers[i])
            x = f.boundary(x, i, layers)
        if self.setting.loss_chunks:
            x_in = f.layer_norm(x, *self.final_norm)
            f.begin_loss()
            return chunked_next_token_loss(f, x_in, self.lm_head, self.setting.loss_chunks)
        logits = self.head(f.layer_norm(x, *self.final_norm))
        return logits if self.setting.own_loss else next_token_loss(f, logits, ids)

    def head(self, x: Tensor) -> Tensor:
        self.f.begin_loss()
        return self.f.linear(x, self.lm_head)

    def layer(self, x: Tensor, w: dict[str, Parameter]) -> Tensor:
        f, p = self.f, self.setting.residual_dropout
        x = f.add(x, call(dropout, f, self.branch(self.attention, w, "attention_norm", x), p))
        return f.add(
            x, call(dropout, f, self.branch(self.feed_forward, w, "feed_forward_norm", x), p)
        )

    def branch(
        self, part: Callable[..., Tensor], w: dict[str, Parameter], norm: str, x: Tensor
    ) -> Tensor:
        return call(part, w, self.norm(w, norm, x))

    def norm(self, w: dict[str, Parameter], name: str, x: Tensor) -> Tensor:
        return self.f.layer_norm(x, w[name], w[f"{name}.bias"])

    def attention(self, w: dict[str, Parameter], x: Tensor) -> Tensor:
        f, s = self.f, self.setting
        qkv = linear(f, x, w, "qkv")
        q, k, v = f.unbind(qkv, 3, s.B, s.N, s.T, s.H)
        del qkv
        y = sdpa(f, s, q, k, v)
        return linear(f, in_rows(f, s, y), w, "out")

    def feed_forward(self, w: dict[str, Parameter], x: Tensor) -> Tensor:
        f = self.f
        up = f.activation(linear(f, x, w, "up"), "gelu")
        return linear(f, up, w, "down")


def norm(name: str, width: int) -> dict[str, tuple[int, ...]]:
    """The shapes of a LayerNorm's weight and bias."""
    return {name: (width,), f"{name}.bias": (width,)}
