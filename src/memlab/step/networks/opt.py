"""transformers' OPT: models/opt/modeling_opt.py of release 5.23, on the CPU."""

from __future__ import annotations

from ..core.graph import Tensor, call
from ..core.setting import Setting
from ..core.storage_log import Dim
from ..kv_cache import Cache
from ..ops import Ops
from .attention import attend, scores_kept, splits, splits_joined
from .gpt_parts import (
    Weights,
    layer_norm,
    linear,
    linear_weights,
    norm_weights,
    own_mask,
    reordered,
)
from .hf_common import dropout, head_loss

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

ACTIVATIONS = ("relu", "gelu", "silu")


class OPT:
    """Mirrors OPTForCausalLM.

    Leaves out  layerdrop, which skips layers at random
    Raises      ValueError for an activation function that is not described, and for layerdrop
    """

    def __init__(self, f: Ops, s: Setting) -> None:
        self.f, self.setting = f, s
        self.cache: Cache | None = None
        extra, m = s.extra or {}, s.model
        self.act = extra.get("activation_function", "relu")
        if self.act not in ACTIVATIONS:
            raise ValueError(
                f"activation_function={self.act!r} is not described; "
                f"known: {', '.join(ACTIVATIONS)}"
            )
        if extra.get("layerdrop"):
            raise ValueError(f"layerdrop={extra['layerdrop']} is not described; known: 0")
        # A model alone does not say it, but only those with norms before have one at the end.
        self.before = extra.get("do_layer_norm_before", True) if s.extra else m.final_norm
        width = self.width = Dim("E", m.embed_dim) if m.embed_dim != m.d_model else s.D
        self.embedding = f.parameter("embedding", (s.V, width), s.dtype)
        self.positions = f.parameter("positions", (m.positions + m.position_offset, s.D), s.dtype)
        self.projections: Weights = {}
        if width != s.D:
            self.projections |= linear_weights(f, s, "project_out", width, s.D, False)
            self.projections |= linear_weights(f, s, "project_in", s.D, width, False)
        self.final = norm_weights(f, s, "final_norm") if m.final_norm else None
        self.layers = [self.layer_weights() for _ in f.each_layer(s.L)]
        if m.tied:
            self.lm_head = f.tied_head(self.embedding)
        else:
            self.lm_head = f.parameter("lm_head", (s.V, width), s.dtype)

    def layer_weights(self) -> Weights:
        f, s, m = self.f, self.setting, self.setting.model
        w: Weights = {}
        for name in ("k", "v", "q", "out"):
            w |= linear_weights(f, s, name, s.D, s.D, m.qkv_bias)
        w |= norm_weights(f, s, "attention_norm")
        w |= linear_weights(f, s, "up", s.F, s.D, m.ff_bias)
        w |= linear_weights(f, s, "down", s.D, s.F, m.ff_bias)
        return w | norm_weights(f, s, "feed_forward_norm")

    def forward(self, ids: Tensor) -> Tensor:
        x = call(self.body, ids)
        return head_loss(self.f, self.setting, x, self.lm_head)

    def body(self, ids: Tensor) -> Tensor:
        f, s = self.f, self.setting
        embeds = f.embedding(self.embedding, ids)
        if s.checkpoint:
            f.require_grad(embeds)  # gradient_checkpointing_enable asks for it
        attended = None
        if s.texts != "padded":  # else the batch has its attention mask
            attended = f.new("ones", (s.B, s.seen), "fp32")
        position_ids = ids if s.texts == "packed" else self.position_ids()
        mask = own_mask(f, s, positions=False)
        position_embeds = f.embedding(self.positions, f.new("add", (s.B, s.T), "int64"))
        if self.projections:
            embeds = linear(f, embeds, self.projections, "project_in")
        x = f.add(embeds, position_embeds)
        region = f.region(s.checkpoint)
        for i in f.each_layer(s.L):
            x = region(self.layer, x, self.layers[i], mask, position_ids)
            x = f.boundary(x, i, s.L)
        if self.final is not None:
            x = layer_norm(f, x, self.final, "final_norm")
        if self.projections:
            x = linear(f, x, self.projections, "project_out")
        del attended, position_ids
        return x

    def position_ids(self) -> Tensor:
        """A running count of the tokens that are attended, those in a cache too, from 0.

        Of a mask that the batch has they are counted in int64, as that mask is.
        """
        f, shape = self.f, (self.setting.B, self.setting.seen)
        kind = "int64" if self.setting.texts == "padded" else "fp32"
        counts = f.new("cumsum", shape, kind)
        product = f.new("mul", shape, kind)
        from_zero = f.new("sub", shape, kind)
        del product
        ids = from_zero if kind == "int64" else f.new("to", shape, "int64")
        del from_zero, counts
        return ids

    def layer(self, x: Tensor, w: Weights, mask: Tensor | None, position_ids: Tensor) -> Tensor:
        f, s = self.f, self.setting
        residual = hidden = x
        if self.before:
            hidden = layer_norm(f, hidden, w, "attention_norm")
        hidden, _ = call(self.attention, w, hidden, mask)
        hidden = dropout(f, hidden, s.residual_dropout)
        hidden = f.add(residual, hidden)
        if not self.before:
            hidden = layer_norm(f, hidden, w, "attention_norm")
        hidden = f.view(hidden, s.rows, s.D)
        residual = hidden
        if self.before:
            hidden = layer_norm(f, hidden, w, "feed_forward_norm")
        hidden = linear(f, hidden, w, "up")
        hidden = f.activation(hidden, self.act)
        hidden = linear(f, hidden, w, "down")
        hidden = dropout(f, hidden, s.residual_dropout)
        hidden = f.view(f.add(residual, hidden), s.B, s.T, s.D)
        if not self.before:
            hidden = layer_norm(f, hidden, w, "feed_forward_norm")
        return hidden

    def attention(self, w: Weights, x: Tensor, mask: Tensor | None) -> Any:
        f, s = self.f, self.setting
        shape, copies = (s.B, s.N, s.T, s.H), splits(f, s)
        query = reordered(f, f.scale(linear(f, x, w, "q")), *shape, copies=copies)
        key = linear(f, x, w, "k")
        if splits_joined(f, s):
            value = linear(f, x, w, "v")
            key, value = (reordered(f, each, *shape, copies=True) for each in (key, value))
        else:
            # The product with its transpose gives the gradient back transposed.
            key = reordered(f, key, *shape, copies=s.B > 1 and scores_kept(f, s))
            value = linear(f, x, w, "v")
            value = reordered(f, value, *shape, copies=copies)
        if self.cache is not None:
            key, value = self.cache.update(key, value)
        y, weights = attend(f, s, query, key, value, mask)
        return linear(f, y, w, "out"), weights
