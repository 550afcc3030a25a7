"""transformers' llama, mistral, qwen2, qwen3 and gemma: one block, few differences.

Source      transformers 5.23: models/*/modeling_*.py, masking_utils.py, integrations/
            sdpa_attention.py, loss/loss_utils.py
Leaves out  padding masks
"""

from __future__ import annotations

from ..adapters import linear
from ..cache import Cache
from ..graph import Tensor, call
from ..ops import Ops
from ..setting import Setting
from ..storage_log import Dim
from .attention import scores_kept, sdpa_forward
from .hf_common import eager_shared_heads, head_loss, mask_of
from .scaled_rotary import Scaled

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Sequence

Weights = dict[str, Tensor]
Shapes = dict[str, tuple[int, ...]]


class HFLlama:
    """LlamaForCausalLM and its like, line by line.

    rows            whether queries and keys lie in rows of all heads, as projected
    rotary_width    how much of a head turns: all of it here
    """

    rows = True

    def __init__(self, f: Ops, setting: Setting) -> None:
        self.f, self.setting = f, setting
        s, m, dtype = setting, setting.model, setting.dtype
        self.gemma = m.family == "gemma"
        self.cache: Cache | None = None
        self.embedding = f.parameter("embedding", (s.V, s.D), dtype)
        self.scale = f.new("embed_scale", (), dtype, "buffers") if self.gemma else None
        self.layers = [self._weights(i) for i in f.each_layer(m.layers)]
        self.final_norm = f.parameter("final_norm", (s.D,), dtype)
        self.rotary_width = self.turned()
        self.rotary_buffers()
        self.lm_head = self.embedding if m.tied else f.parameter("lm_head", (s.V, s.D), dtype)

    def rotary_buffers(self) -> None:
        """Frequencies, and the same again for scalings that change them."""
        f, width = self.f, self.rotary_width
        half = (Dim(f"{width.letters}/2", width // 2),)
        self.rates = [f.new("inv_freq", half, "fp32", "buffers") for _ in range(2)]
        self.scaled = Scaled(f, self.setting, self.rates)

    def turned(self) -> Dim:
        """How much of a head turns with its position."""
        return self.setting.H

    def _weights(self, layer: int) -> Weights:
        f, s = self.f, self.setting
        shapes = self.attention_shapes() | self.feed_forward_shapes(layer)
        shapes |= {"attention_norm": (s.D,), "feed_forward_norm": (s.D,)}
        return {name: f.parameter(name, shape, s.dtype_of(name)) for name, shape in shapes.items()}

    def attention_shapes(self) -> Shapes:
        s, m = self.setting, self.setting.model
        shapes: Shapes = {}
        for name, outputs in {"q": s.queries, "k": s.keys, "v": s.keys}.items():
            shapes |= s.linear(name, outputs, s.D, m.qkv_bias)
        shapes |= s.linear("out", s.D, s.queries, m.out_bias)
        if m.qk_norm:
            shapes |= {"q_norm": (s.H,), "k_norm": (s.H,)}
        return shapes

    def feed_forward_shapes(self, layer: int) -> Shapes:
        s, m = self.setting, self.setting.model
        shapes: Shapes = {}
        for name in ("gate", "up"):
            shapes |= s.linear(name, s.F, s.D, m.ff_bias)
        return shapes | s.linear("down", s.D, s.F, m.ff_bias)

    def forward(self, ids: Tensor) -> Tensor:
        hidden = call(self.body, ids)
        return head_loss(self.f, self.setting, hidden, self.lm_head)

    def body(self, ids: Tensor) -> Tensor:
        f, s, layers = self.f, self.setting, self.setting.model.layers
        embeds = call(self.embed, ids)
        if s.checkpoint:
            f.require_grad(embeds)  # gradient_checkpointing_enable asks for it
        if self.cache is not None:
            self.cache.open()
        positions = f.new("arange", (s.T,), "int64")
        positions = f.new("add", (s.T,), "int64")
        masks = self.masks(embeds.dtype)
        hidden = embeds
        angles = call(self.rotary, embeds.dtype)
        for i in f.each_layer(layers):
            region = f.checkpoint if s.checkpoint else call
            hidden = region(self.layer, hidden, self.layers[i], angles, masks[i], positions)
            hidden = f.boundary(hidden, i, layers)
        return call(self.norm, hidden, self.final_norm)

    def masks(self, dtype: str) -> Sequence[Tensor | None]:
        """One for each layer; those of a kind share one."""
        f, s = self.f, self.setting
        if s.sliding is None:
            return [mask_of(f, s, dtype, s.window)] * s.L
        full, near = mask_of(f, s, dtype, None), mask_of(f, s, dtype, s.window)
        return [near if slides else full for slides in s.sliding] + [
            full
        ]  # which stays, used or not

    def embed(self, ids: Tensor) -> Tensor:
        f = self.f
        if self.scale is None:
            return f.embedding(self.embedding, ids)
        x = f.embedding(self.embedding, ids)
        return f.mul(x, f.to(self.scale, self.setting.dtype))

    def rotary(self, dtype: str) -> tuple[Tensor, Tensor]:
        f, s = self.f, self.setting
        self.scaled.update()
        half = (1, s.T, self.rates[0].shape[0])
        wide = f.new("to", (1, s.T, 1), "fp32")
        frequencies = f.new("mul", half, "fp32")
        del wide
        angles = f.cat([frequencies, frequencies])
        tables = []
        for name in ("cos", "sin"):
            table = f.new(name, (1, s.T, self.rotary_width), "fp32")
            tables.append(f.scale(table))
            del table
        cos, sin = f.to(tables[0], dtype), f.to(tables[1], dtype)
        del frequencies, angles
        return cos, sin

    def layer(
        self,
        x: Tensor,
        w: Weights,
        angles: tuple[Tensor, Tensor],
        mask: Tensor | None,
        positions: Tensor,  # nobody reads them, but a checkpoint keeps them with the rest
    ) -> Tensor:
        f = self.f
        residual = x
        hidden = call(self.norm, x, w["attention_norm"])
        hidden, kept = call(self.attention, w, hidden, angles, mask)
        hidden = f.add(residual, hidden)
        residual = hidden
        hidden = call(self.norm, hidden, w["feed_forward_norm"])
        hidden = call(self.feed_forward, w, hidden)
        hidden = f.add(residual, hidden)
        del kept
        return hidden

    def norm(self, x: Tensor, weight: Tensor) -> Tensor:
        f = self.f
        if self.gemma:
            wide = f.to(x, "fp32")
            normal = f.mul(wide, f.rsqrt(f.shift(f.mean(f.square(wide)))))
            del wide
            normal = f.mul(normal, f.shift(f.to(weight, "fp32")))
            return f.to(normal, x.dtype)
        hidden = f.to(x, "fp32")
        variance = f.mean(f.square(hidden))
        hidden = f.mul(hidden, f.rsqrt(f.shift(variance)))
        return f.mul(weight, f.to(hidden, x.dtype))

    def attention(
        self, w: Weights, x: Tensor, angles: tuple[Tensor, Tensor], mask: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        f, s = self.f, self.setting
        q, k, v = self.projected(w, x, mask is not None)
        q, k = call(self.rotate, q, k, *angles)
        if self.cache is not None:
            k, v = self.cache.update(k, v)
        y, kept = self.attend(q, k, v, mask)
        y = f.view(y, s.B, s.T, s.queries)
        y = linear(f, y, w, "out")
        return y, kept

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        """Attention by the kernel of the setting, and eager's weights."""
        f, s = self.f, self.setting
        if s.attention == "eager":
            assert mask is not None
            return eager_shared_heads(f, s, q, k, v, mask, rows=self.rows)
        return sdpa_forward(f, s, q, k, v, mask, rows=self.rows), None

    def projected(self, w: Weights, x: Tensor, masked: bool) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values, head by head."""
        s = self.setting
        q = self.heads(w, "q", x, s.N)
        k = self.heads(w, "k", x, s.K)
        v = self.heads(w, "v", x, s.K, masked=masked)
        return q, k, v

    def heads(
        self, w: Weights, name: str, x: Tensor, heads: int, *, masked: bool = False
    ) -> Tensor:
        y = self.apart(linear(self.f, x, w, name), name, heads, masked=masked)
        if f"{name}_norm" in w:
            y = call(self.norm, y, w[f"{name}_norm"])
        return y

    def apart(self, y: Tensor, name: str, heads: int, *, masked: bool = False) -> Tensor:
        """Rows of all heads as [B, heads, T, H], of queries, keys or values."""
        f, s = self.f, self.setting
        y = f.view(y, s.B, s.T, heads, s.H)
        # Gradients of q and k come head by head, as slices of them are written into zeros; those
        # of v too, but for the kernel's. The projection wants them token by token.
        repeats = masked and s.K < s.N
        if heads > 1 and (name != "v" or repeats or scores_kept(f, s, masked=masked)):
            y = f.folded(y)
        return f.view(y, s.B, heads, s.T, s.H)

    def rotate(self, q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
        f = self.f
        turned = f.add(f.mul(q, cos), f.mul(self.rotate_half(q), sin))
        return turned, f.add(f.mul(k, cos), f.mul(self.rotate_half(k), sin))

    def rotate_half(self, x: Tensor) -> Tensor:
        f, half = self.f, (*x.shape[:-1], self.rates[0].shape[0])
        first = f.part_of(x, *half)
        second = f.part_of(x, *half)
        return f.cat([f.neg(second), first])

    def feed_forward(self, w: Weights, x: Tensor, part: str = "") -> Tensor:
        f = self.f
        return call(linear, f, self.gated(w, x, part), w, f"{part}down")

    def gated(self, w: Weights, x: Tensor, part: str = "") -> Tensor:
        """act(gate) · up: one expression, so that its parts go with it."""
        f, activation = self.f, "gelu" if self.gemma else "silu"
        return f.mul(
            call(f.activation, linear(f, x, w, f"{part}gate"), activation),
            linear(f, x, w, f"{part}up"),
        )
