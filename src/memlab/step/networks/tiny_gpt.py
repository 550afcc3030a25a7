"""memlab.lab's TinyGPT: the gpt2 family in plain torch."""

from ..engine import Dim, Parameter, Tensor, call
from ..ops import Ops
from ..setting import Setting
from .tiny_llama import linear, next_token_loss


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
        shapes |= linear("qkv", Dim("3·N·H", 3 * s.queries), s.D, m.qkv_bias)
        shapes |= linear("out", s.D, s.queries, m.out_bias)
        shapes |= norm("feed_forward_norm", s.D)
        shapes |= linear("up", s.F, s.D, m.ff_bias)
        shapes |= linear("down", s.D, s.F, m.ff_bias)
        return {name: f.parameter(name, shape, s.dtype) for name, shape in shapes.items()}

    def forward(self, ids: Tensor) -> Tensor:
        f, layers = self.f, self.setting.model.layers
        positions = f.new("arange", (self.setting.T,), "int64")
        x = f.add(f.embedding(self.embedding, ids), f.embedding(self.positions, positions))
        for i in f.each_layer(layers):
            x = call(self.layer, self.layers[i], x)
            x = f.boundary(x, i, layers)
        logits = self.head(f.layer_norm(x, *self.final_norm))
        return next_token_loss(f, logits, ids)

    def head(self, x: Tensor) -> Tensor:
        self.f.begin_loss()
        return self.f.linear(x, self.lm_head)

    def layer(self, w: dict[str, Parameter], x: Tensor) -> Tensor:
        f = self.f
        x = f.add(x, call(self.attention, w, self.norm(w, "attention_norm", x)))
        return f.add(x, call(self.feed_forward, w, self.norm(w, "feed_forward_norm", x)))

    def norm(self, w: dict[str, Parameter], name: str, x: Tensor) -> Tensor:
        return self.f.layer_norm(x, w[name], w[f"{name}.bias"])

    def attention(self, w: dict[str, Parameter], x: Tensor) -> Tensor:
        f, s = self.f, self.setting
        qkv = f.linear(x, w["qkv"], w.get("qkv.bias"))
        q, k, v = f.unbind(qkv, 3, s.B, s.N, s.T, s.H)
        del qkv
        y = f.attention(q, k, v)
        return f.linear(f.view(y, s.B, s.T, s.queries), w["out"], w.get("out.bias"))

    def feed_forward(self, w: dict[str, Parameter], x: Tensor) -> Tensor:
        f = self.f
        up = f.activation(f.linear(x, w["up"], w.get("up.bias")), "gelu")
        return f.linear(up, w["down"], w.get("down.bias"))


def norm(name: str, width: int) -> dict[str, tuple[int, ...]]:
    """The shapes of a LayerNorm's weight and bias."""
    return {name: (width,), f"{name}.bias": (width,)}
