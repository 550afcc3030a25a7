"""transformers' llama, mistral, qwen2 and qwen3: one block, few differences.

Families that differ in more are subclasses, one file each, which say what is theirs. This one is
long, because it is one block told in the order of the real code.

Source      transformers: models/*/modeling_*.py, masking_utils.py, integrations/
            sdpa_attention.py, loss/loss_utils.py
"""

from __future__ import annotations

from ..adapters.lora import linear
from ..core.graph import Tensor, call
from ..core.setting import Setting
from ..core.storage_log import Dim
from ..kv_cache import Cache
from ..ops import Ops
from .attention import scores_kept, sdpa_forward, splits_joined
from .flash2 import FLASH_2, flash2
from .hf_common import eager_shared_heads, embedded, head_loss
from .llama_weights import LlamaWeights
from .llama_weights import Shapes as Shapes
from .llama_weights import Weights as Weights
from .masks import mask_of
from .scaled_rotary import Scaled

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


class HFLlama(LlamaWeights):
    """LlamaForCausalLM and its like, line by line.

    activation      of the gate
    rows            whether queries and keys lie in rows of all heads, as projected
    rotary_width    how much of a head turns: all of it here
    cache_first     whether a call makes its cache before it looks up the embeddings
    """

    activation = "silu"
    rows = True
    cache_first = False

    def __init__(self, f: Ops, setting: Setting) -> None:
        self.f, self.setting = f, setting
        s, m, dtype = setting, setting.model, setting.dtype
        self.cache: Cache | None = None
        self.embedding = f.parameter("embedding", (s.V, s.D), dtype)
        self.embedding_buffers()
        self.layers = [self.layer_weights(i) for i in f.each_layer(m.layers)]
        self.final = self.final_weights()
        self.rotary_width = self.turned()
        self.rotary_buffers()
        self.lm_head = (
            f.tied_head(self.embedding) if m.tied else f.parameter("lm_head", (s.V, s.D), dtype)
        )

    def embedding_buffers(self) -> None:
        """What the embedding keeps beside its table: nothing."""

    def rotary_buffers(self) -> None:
        """Frequencies, and the same again for scalings that change them."""
        f, width = self.f, self.rotary_width
        half = (Dim(f"{width.letters}/2", width // 2),)
        self.rates = [f.new("inv_freq", half, "fp32", "buffers") for _ in range(2)]
        self.scaled = Scaled(f, self.setting, self.rates)

    def turned(self) -> Dim:
        """How much of a head turns with its position."""
        return self.setting.H

    def forward(self, ids: Tensor) -> Tensor:
        hidden = call(self.body, ids)
        return head_loss(self.f, self.setting, hidden, self.lm_head, self.logits)

    def logits(self, hidden: Tensor) -> Tensor:
        """The output head."""
        return self.f.linear(hidden, self.lm_head)

    def body(self, ids: Tensor) -> Tensor:
        f, s, layers = self.f, self.setting, self.setting.model.layers
        if self.cache is not None and self.cache_first:
            self.cache.open()
        embeds = call(self.embed, ids)
        if s.checkpoint:
            f.require_grad(embeds)  # gradient_checkpointing_enable asks for it
        embeds = self.scaled_embeds(embeds)
        if self.cache is not None:
            self.cache.open()
        positions = ids  # of packed texts, as long-lived: they come with the batch
        if s.texts != "packed":
            positions = f.new("arange", (s.T,), "int64")
            positions = f.new("add", (s.T,), "int64")
        masks = self.masks(embeds.dtype)
        hidden = self.dropped(embeds)
        angles = call(self.rotary, embeds.dtype)
        for i in f.each_layer(layers):
            region = f.region(s.checkpoint)
            hidden = region(
                self.layer, hidden, self.layers[i], self.angles_of(angles, i), masks[i], positions
            )
            hidden = f.boundary(hidden, i, layers)
        return call(self.normed, hidden, self.final, "final_norm")

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
        return embedded(self.f, self.embedding, ids)

    def scaled_embeds(self, embeds: Tensor) -> Tensor:
        """What the body makes of the embedding's output: nothing."""
        return embeds

    def dropped(self, embeds: Tensor) -> Tensor:
        """The embedding's output, with dropout where a family has it there."""
        return embeds

    def angles_of(self, angles: Any, layer: int) -> Any:
        """What a layer is given of the angles: all of them."""
        return angles

    def turns_by(self, angles: Any) -> bool:
        """Whether these angles turn queries and keys."""
        return True

    def rotary(self, dtype: str) -> Any:
        f, s = self.f, self.setting
        self.scaled.update()
        texts = s.B if s.shared else 1  # each with its own positions
        half = (texts, s.T, self.rates[0].shape[0])
        wide = f.new("to", (texts, s.T, 1), "fp32")
        frequencies = f.new("mul", half, "fp32")
        del wide
        angles = f.cat([frequencies, frequencies])
        tables = []
        for name in ("cos", "sin"):
            table = f.new(name, (texts, s.T, self.rotary_width), "fp32")
            tables.append(f.scale(table))
            del table
        cos, sin = f.to(tables[0], dtype), f.to(tables[1], dtype)
        del frequencies, angles
        return cos, sin

    def layer(
        self,
        x: Tensor,
        w: Weights,
        angles: Any,
        mask: Tensor | None,
        positions: Tensor,  # nobody reads them, but a checkpoint keeps them with the rest
    ) -> Tensor:
        f = self.f
        residual = x
        hidden = call(self.normed, x, w, "attention_norm")
        hidden, kept = call(self.attention, w, hidden, angles, mask)
        hidden = f.add(residual, hidden)
        residual = hidden
        hidden = call(self.normed, hidden, w, "feed_forward_norm")
        hidden = call(self.feed_forward, w, hidden)
        hidden = f.add(residual, hidden)
        del kept
        return hidden

    def normed(self, x: Tensor, w: Weights, name: str) -> Tensor:
        return self.norm(x, w[name])

    def norm(self, x: Tensor, weight: Tensor) -> Tensor:
        f = self.f
        hidden = f.to(x, "fp32")
        variance = f.mean(f.square(hidden))
        hidden = f.mul(hidden, f.rsqrt(f.shift(variance)))
        return f.mul(weight, f.to(hidden, x.dtype))

    def attention(
        self, w: Weights, x: Tensor, angles: Any, mask: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        f, s = self.f, self.setting
        mask = None if s.shared else mask  # accelerate's hook
        q, k, v = self.projected(w, x, mask is not None, self.turns_by(angles))
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
        if s.attention == FLASH_2:
            return flash2(f, s, q, k, v), None
        return sdpa_forward(f, s, q, k, v, mask, rows=self.rows), None

    def projected(
        self, w: Weights, x: Tensor, masked: bool, turns: bool = True
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values, head by head; masked and turns: see `apart`."""
        s = self.setting
        q = self.heads(w, "q", x, s.N, masked=masked, turns=turns)
        k = self.heads(w, "k", x, s.K, masked=masked, turns=turns)
        v = self.heads(w, "v", x, s.K, masked=masked, turns=turns)
        return q, k, v

    def heads(
        self, w: Weights, name: str, x: Tensor, heads: int, *, masked: bool, turns: bool
    ) -> Tensor:
        y = self.apart(linear(self.f, x, w, name), name, heads, masked=masked, turns=turns)
        if f"{name}_norm" in w:
            y = call(self.norm, y, w[f"{name}_norm"])
        return y

    def apart(
        self, y: Tensor, name: str, heads: int, *, masked: bool = False, turns: bool = True
    ) -> Tensor:
        """Rows of all heads as [B, heads, T, H], of queries, keys or values.

        masked      whether SDPA has a mask: shared heads are repeated then
        turns       whether positions turn queries and keys
        """
        f, s = self.f, self.setting
        y = f.view(y, s.B, s.T, heads, s.H)
        # Gradients of q and k come head by head, as slices of them are written into zeros; those
        # of v too, but for the kernel's. The projection wants them token by token.
        sliced = turns and name != "v"
        repeats = masked and s.K < s.N and name != "q"
        scores = s.shared or scores_kept(f, s, masked=masked)
        joined = name != "q" and splits_joined(f, s, masked=masked)
        copied = heads > 1 and (sliced or repeats or scores or joined)
        if name == "k" and not turns and s.K == s.N and scores:
            copied = s.B > 1  # in columns of whole rows: one text's are a transpose
        if copied:
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
        """Of the layer, or of a part of it whose weights begin with this name."""
        f = self.f
        return call(linear, f, self.gated(w, x, part), w, f"{part}down")

    def gated(self, w: Weights, x: Tensor, part: str = "") -> Tensor:
        """act(gate) · up: one expression, so that its parts go with it."""
        f = self.f
        return f.mul(
            call(f.activation, linear(f, x, w, f"{part}gate"), self.activation),
            linear(f, x, w, f"{part}up"),
        )
