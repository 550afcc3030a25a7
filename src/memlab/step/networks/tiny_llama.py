"""memlab.lab's TinyLlama: the llama, mistral, qwen2 and qwen3 families in plain torch."""

from ..adapters.lora import linear
from ..core.graph import Parameter, Tensor, call
from ..core.setting import Setting
from ..core.storage_log import Dim
from ..loops.losses import chunked_next_token_loss
from ..ops import Ops
from .attention import in_rows, scores_kept, sdpa


class TinyLlama:
    """Mirrors memlab.lab.models.llama line by line."""

    def __init__(self, f: Ops, setting: Setting) -> None:
        self.f, self.setting = f, setting
        s, m, dtype = setting, setting.model, setting.dtype
        self.factorized = m.embed_dim != m.d_model
        self.embedding = f.parameter("embedding", (s.V, s.E if self.factorized else s.D), dtype)
        if self.factorized:
            self.project_in = f.parameter("project_in", (s.D, s.E), dtype)
        self.layers = [self._weights() for _ in f.each_layer(m.layers)]
        self.final_norm = f.parameter("final_norm", (s.D,), dtype)
        if self.factorized:
            self.project_out = f.parameter("project_out", (s.E, s.D), dtype)
        head = self.embedding.shape
        self.lm_head = self.embedding if m.tied else f.parameter("lm_head", head, dtype)
        table = (Dim("positions", m.positions), s.H)
        self.tables = [f.new(name, table, dtype, "buffers") for name in ("cos", "sin")]
        self.angles = [f.view(table, s.T, s.H) for table in self.tables]

    def _weights(self) -> dict[str, Parameter]:
        f, s, m = self.f, self.setting, self.setting.model
        shapes: dict[str, tuple[int, ...]] = {"attention_norm": (s.D,)}
        for name, outputs in {"q": s.queries, "k": s.keys, "v": s.keys}.items():
            shapes |= s.linear(name, outputs, s.D, m.qkv_bias)
        shapes |= s.linear("out", s.D, s.queries, m.out_bias)
        if m.qk_norm:
            shapes |= {"q_norm": (s.H,), "k_norm": (s.H,)}
        shapes["feed_forward_norm"] = (s.D,)
        for name in ("gate", "up"):
            shapes |= s.linear(name, s.F, s.D, m.ff_bias)
        shapes |= s.linear("down", s.D, s.F, m.ff_bias)
        return {name: f.parameter(name, shape, s.dtype_of(name)) for name, shape in shapes.items()}

    def forward(self, ids: Tensor) -> Tensor:
        f = self.f
        x = f.embedding(self.embedding, ids)
        if self.factorized:
            x = f.linear(x, self.project_in)
        layers = self.setting.model.layers
        region = f.region(self.setting.checkpoint)
        for i in f.each_layer(layers):
            x = region(self.layer, x, self.layers[i])
            x = f.boundary(x, i, layers)
        if self.setting.loss_chunks:
            x_in = self.narrowed(rms_norm(f, x, self.final_norm))
            return chunked_next_token_loss(f, x_in, self.lm_head, self.setting.loss_chunks)
        logits = self.head(rms_norm(f, x, self.final_norm))
        return logits if self.setting.own_loss else next_token_loss(f, logits, ids)

    def head(self, x: Tensor) -> Tensor:
        return self.f.linear(self.narrowed(x), self.lm_head)

    def narrowed(self, x: Tensor) -> Tensor:
        self.f.begin_loss()
        return self.f.linear(x, self.project_out) if self.factorized else x

    def layer(self, x: Tensor, w: dict[str, Parameter]) -> Tensor:
        f = self.f
        x = f.add(x, call(self.attention, w, rms_norm(f, x, w["attention_norm"])))
        return f.add(x, call(self.feed_forward, w, rms_norm(f, x, w["feed_forward_norm"])))

    def attention(self, w: dict[str, Parameter], x: Tensor) -> Tensor:
        f, s = self.f, self.setting
        q = self.heads(w, "q", x, s.N)
        k = self.heads(w, "k", x, s.K)
        v = self.heads(w, "v", x, s.K)
        y = sdpa(f, s, rotate(f, q, *self.angles), rotate(f, k, *self.angles), v)
        return linear(f, in_rows(f, s, y), w, "out")

    def heads(self, w: dict[str, Parameter], name: str, x: Tensor, heads: int) -> Tensor:
        f, (B, T, _), H = self.f, x.shape, self.setting.H
        y = linear(f, x, w, name)
        if f"{name}_norm" in w:
            y = rms_norm(f, f.view(y, B, T, heads, H), w[f"{name}_norm"])
        elif heads > 1 and scores_kept(f, self.setting):
            y = f.folded(y)
        return f.view(y, B, heads, T, H)

    def feed_forward(self, w: dict[str, Parameter], x: Tensor) -> Tensor:
        return linear(self.f, self.gated(w, x), w, "down")

    def gated(self, w: dict[str, Parameter], x: Tensor) -> Tensor:
        """silu(gate) · up: one expression, so that its parts go with it."""
        f = self.f
        return f.mul(
            f.activation(linear(f, x, w, "gate"), "silu"),
            linear(f, x, w, "up"),
        )


def rms_norm(f: Ops, x: Tensor, weight: Tensor) -> Tensor:
    """torch.nn.RMSNorm: one kernel on CUDA; on the CPU, narrow inputs in fp32, then back."""
    if f.backend == "cuda":
        return f.rms_norm(x, weight)
    wide = f.to(x, "fp32")
    square = f.square(wide)  # one C++ expression: what it makes lives to its end
    mean = f.mean(square)
    root = f.rsqrt(mean)
    del square, mean
    normal = f.mul(wide, root)
    scaled = f.mul(normal, weight)
    del wide, normal
    return f.to(scaled, x.dtype)


def rotate(f: Ops, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = f.halves(x)
    return f.add(f.mul(x, cos), f.mul(f.cat([f.neg(second), first]), sin))


def next_token_loss(f: Ops, logits: Tensor, ids: Tensor) -> Tensor:
    """memlab.lab.models.common: labels shifted by padding, logits in fp32."""
    B, T, V = logits.shape
    labels = f.new("pad", (B, T), "int64")
    rows = Dim("B·T", B * T)
    wide = f.to(logits, "fp32")
    return f.cross_entropy(f.view(wide, rows, V), labels)
