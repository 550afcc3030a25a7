"""transformers' GPT-2: models/gpt2/modeling_gpt2.py of release 5.23, on the CPU."""

from __future__ import annotations

from ..adapters.lora import adapted
from ..core.graph import Grads, Tensor, call
from ..core.setting import Setting
from ..core.storage_log import Dim
from ..kv_cache import Cache
from ..ops import Ops
from .attention import attend, splits, splits_joined
from .gpt_parts import (
    Weights,
    counted_positions,
    layer_norm,
    norm_weights,
    own_mask,
    pieces,
    reordered,
)
from .hf_common import dropout, embedded, head_loss

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

ACTIVATIONS = ("gelu_new", "gelu", "gelu_pytorch_tanh", "relu", "silu")


class GPT2:
    """Mirrors GPT2LMHeadModel.

    Leaves out  cross-attention, the upcast and reordered attention
    Raises      ValueError for an activation function or an attention that is not described
    """

    def __init__(self, f: Ops, s: Setting) -> None:
        self.f, self.setting = f, s
        self.cache: Cache | None = None
        extra = s.extra or {}
        self.act = extra.get("activation_function", "gelu_new")
        if self.act not in ACTIVATIONS:
            raise ValueError(
                f"activation_function={self.act!r} is not described; "
                f"known: {', '.join(ACTIVATIONS)}"
            )
        if extra.get("reorder_and_upcast_attn"):
            raise ValueError("reorder_and_upcast_attn=True is not described; known: False")
        self.wte = f.parameter("embedding", (s.V, s.D), s.dtype)
        self.wpe = f.parameter("positions", (s.model.positions, s.D), s.dtype)
        self.layers = [self.layer_weights() for _ in f.each_layer(s.L)]
        self.final = norm_weights(f, s, "final_norm")
        if s.model.tied:
            self.lm_head = f.tied_head(self.wte)
        else:
            self.lm_head = f.parameter("lm_head", (s.V, s.D), s.dtype)

    def layer_weights(self) -> Weights:
        f, s = self.f, self.setting
        w = norm_weights(f, s, "attention_norm")
        w |= self.conv1d_weights("qkv", s.D, Dim("3·D", 3 * s.D))
        w |= self.conv1d_weights("out", s.D, s.D)
        w |= norm_weights(f, s, "feed_forward_norm")
        return w | self.conv1d_weights("up", s.D, s.F) | self.conv1d_weights("down", s.F, s.D)

    def conv1d_weights(self, name: str, inputs: int, outputs: int) -> Weights:
        f, s = self.f, self.setting
        shapes = s.linear(name, outputs, inputs, True) | {name: (inputs, outputs)}
        return {part: f.parameter(part, shape, s.dtype_of(part)) for part, shape in shapes.items()}

    def forward(self, ids: Tensor) -> Tensor:
        x = call(self.body, ids)
        return head_loss(self.f, self.setting, x, self.lm_head)

    def embed(self, ids: Tensor) -> Tensor:
        return embedded(self.f, self.wte, ids)

    def body(self, ids: Tensor) -> Tensor:
        f, s = self.f, self.setting
        embeds = call(self.embed, ids)
        if s.checkpoint:
            f.require_grad(embeds)  # gradient_checkpointing_enable asks for it
        position_ids = counted_positions(f, s, ids)
        position_embeds = f.embedding(self.wpe, f.view(position_ids, 1, s.T))
        x = f.add(embeds, position_embeds)
        mask = own_mask(f, s, positions=True)
        x = self.dropped(x, s.embedding_dropout)
        region = f.region(s.checkpoint)
        if s.checkpoint and mask is not None:
            mask.record.category = "activations"  # given by position, so kept by autograd
        for i in f.each_layer(s.L):
            x = region(self.block, x, self.layers[i], mask, position_ids)
            x = f.boundary(x, i, s.L)
        return layer_norm(f, x, self.final, "final_norm")

    def block(
        self,
        x: Tensor,
        w: Weights,
        mask: Tensor | None,
        positions: Tensor,  # nobody reads them, but a checkpoint keeps them with the rest
    ) -> Tensor:
        f = self.f
        hidden = layer_norm(f, x, w, "attention_norm")
        attended, _ = call(self.attention, w, hidden, mask)
        hidden = f.add(attended, x)
        residual = hidden
        hidden = layer_norm(f, hidden, w, "feed_forward_norm")
        fed = call(self.mlp, w, hidden)
        return f.add(residual, fed)

    def attention(self, w: Weights, x: Tensor, mask: Tensor | None) -> Any:
        f, s = self.f, self.setting
        q, k, v = self.heads(self.conv1d(x, w, "qkv"))
        if self.cache is not None:
            k, v = self.cache.update(k, v)
        y, weights = attend(f, s, q, k, v, mask, upcast=False, part=True)
        y = self.conv1d(y, w, "out")
        return self.dropped(y, s.residual_dropout), weights

    def heads(self, qkv: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """In the order of the real code; products give their gradients in another order."""
        s, shape = self.setting, (self.setting.B, self.setting.N, self.setting.T, self.setting.H)
        q, k, v = pieces(self.f, qkv, 3)
        copies, joined = splits(self.f, s), splits_joined(self.f, s)
        # Transposed twice on its way: its gradient needs no copy.
        key = reordered(self.f, k, *shape, copies=joined)
        value = reordered(self.f, v, *shape, copies=copies or joined)
        query = reordered(self.f, q, *shape, copies=copies)
        return query, key, value

    def mlp(self, w: Weights, x: Tensor) -> Tensor:
        hidden = self.conv1d(x, w, "up")
        hidden = call(self.activation, hidden)
        hidden = self.conv1d(hidden, w, "down")
        return self.dropped(hidden, self.setting.residual_dropout)

    def conv1d(self, x: Tensor, w: Weights, name: str) -> Tensor:
        return conv1d(self.f, x, w, name)

    def dropped(self, x: Tensor, p: float) -> Tensor:
        return dropout(self.f, x, p)

    def activation(self, x: Tensor) -> Tensor:
        if self.act == "gelu_new":
            return gelu_new(self.f, x)
        return self.f.activation(x, "gelu" if self.act.startswith("gelu") else self.act)


def gelu_new(f: Ops, x: Tensor) -> Tensor:
    """0.5 · x · (1 + tanh(√(2/π) · (x + 0.044715 · x³))), written out: four tensors are kept."""
    half = f.scale(x)
    return f.mul(half, f.shift(tanh(f, f.scale(f.add(x, f.scale(cube(f, x)))))))


def cube(f: Ops, x: Tensor) -> Tensor:
    """Another power than the square, the same memory; in fp32 under CUDA's autocast.

    Source      aten/src/ATen/autocast_mode.h, AT_FORALL_FP32
    """
    wide = f.to(x, "fp32") if f.autocast and f.backend == "cuda" else x
    return f.square(wide)


def tanh(f: Ops, x: Tensor) -> Tensor:
    out = f.new("tanh", x.shape, x.dtype)

    def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
        return [f.new("tanh_backward", grads[0].shape, grads[0].dtype)]

    f.apply("tanh", [x], [out], run, [("result", out)])
    return out


def conv1d(f: Ops, x: Tensor, weights: Mapping[str, Tensor], name: str) -> Tensor:
    """A linear layer whose weight is stored [inputs, outputs], and its adapter where it has one."""
    return adapted(f, x, weights, name, _conv1d)


def _conv1d(f: Ops, x: Tensor, weights: Mapping[str, Tensor], name: str) -> Tensor:
    w = f.cast(weights[name])
    a = f.cast(x)
    b = f.cast(weights[f"{name}.bias"])
    out = f.new("addmm", (*x.shape[:-1], w.shape[1]), a.dtype)
    shapes = (a.shape, w.shape)

    def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
        made = [f.new("mm", shapes[i], grads[0].dtype) if needs[i + 1] else None for i in (0, 1)]
        return [grads[0], *made]  # the bias comes first; it is summed afterwards

    kept = [("mat1", a) if w.node else None, ("mat2", w) if a.node else None]
    f.apply("addmm", [b, a, w], [out], run, kept)
    return out
