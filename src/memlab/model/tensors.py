"""The parameter tensors of a model, kind by kind, in the layout that its family really has.

Shapes matter beyond their product: optimizers and quantizers treat small tensors, vectors and
matrices differently, and blocks restart on each row. Letters as in memlab.terms.weights.
"""

from __future__ import annotations

from ..base.frozen import dataclass
from ..families import record_of
from ..terms.optimizer import numel

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from .latent import Latent
    from .model import Model

COMPONENTS = (
    "embedding",
    "positions",
    "attention",
    "feed_forward",
    "norm",
    "lm_head",
    "value_embedding",
    "other",
)

# The norms of a layer: one for both parts, one before or after each, one before and one after each.
BLOCK_NORMS = ("attention_norm", "feed_forward_norm", "attention_out_norm", "feed_forward_out_norm")

# Channels of the residual stream that nanochat's two kinds of gate read.
# https://github.com/karpathy/nanochat/blob/master/nanochat/gpt.py
VALUE_GATE_WIDTH = 12
SMEAR_GATE_WIDTH = 24


@dataclass(frozen=True)
class Tensor:
    """One kind of parameter tensor, and how many of them a model has.

    Shapes      `shape` is that of one tensor, as `torch.nn.Module.named_parameters` shows it
    Unit        `numel` counts the values of one tensor, `count` those of all `copies`
    """

    name: str
    shape: tuple[int, ...]
    component: str
    copies: int = 1
    # The weight of a matmul layer. An embedding is not one, even when tied; nor are experts, all of
    # a layer in one tensor of three dimensions, which quantizers of linear layers pass over.
    linear: bool = False

    @property
    def hidden(self) -> bool:
        """Whether it is a matrix that Muon and GaLore take: routers stay with AdamW."""
        inside = self.linear and self.component in ("attention", "feed_forward")
        return inside and "router" not in self.name

    @property
    def numel(self) -> int:
        return numel(self.shape)

    @property
    def count(self) -> int:
        return self.numel * self.copies


def tensors_of(model: Model) -> Iterator[Tensor]:
    """Every kind of parameter tensor of a model, from the input to the output.

    Leaves out  a tied output head, because it is the embedding; buffers such as rotary tables
    """
    m = model
    if record_of(m.family).recorded is not None:
        from .recorded import rows

        for name, shape, part, copies, linear in rows(m):
            yield Tensor(name, shape, part, copies, linear=linear)
        return
    yield Tensor("embedding", (m.vocab, m.embed_dim), "embedding")
    if m.learned_positions:
        yield Tensor("positions", (m.positions + m.position_offset, m.d_model), "positions")
    if m.embed_dim != m.d_model:
        yield Tensor("project_in", (m.d_model, m.embed_dim), "other", linear=True)
    yield from _attention(m)
    yield from _feed_forward(m)
    yield from _norms(m)
    if m.embed_dim != m.d_model:
        yield Tensor("project_out", (m.embed_dim, m.d_model), "other", linear=True)
    if m.value_embeddings:
        yield from _value_embeddings(m)
    if m.residual_scalars:
        yield from _residual_scalars(m)
    if not m.tied:
        yield Tensor("lm_head", (m.vocab, m.embed_dim), "lm_head", linear=True)


def _linear(
    m: Model, name: str, outputs: int, inputs: int, *, bias: bool, copies: int | None = None
) -> Iterator[Tensor]:
    """Weight and bias of a linear layer that each of the L layers has, or so many of them."""
    component = name.split(".")[0]
    shape = (inputs, outputs) if m.conv1d else (outputs, inputs)
    count = m.layers if copies is None else copies
    yield Tensor(f"layers.{name}", shape, component, count, linear=True)
    if bias:
        yield Tensor(f"layers.{name}.bias", (outputs,), component, count)


def _attention(m: Model) -> Iterator[Tensor]:
    if m.sinks:  # which stand before all matrices of a layer: an optimizer steps in this order
        yield Tensor("layers.attention.sinks", (m.heads,), "attention", m.layers)
    yield from _latent(m, m.latent) if m.latent is not None else _projections(m)


def _projections(m: Model) -> Iterator[Tensor]:
    q, kv = m.heads * m.head_dim, m.kv_heads * m.head_dim
    parts = {"qkv": q + 2 * kv} if m.fused_qkv else {"q": q, "k": kv, "v": kv}
    for name, outputs in parts.items():
        yield from _linear(m, f"attention.{name}", outputs, m.d_model, bias=m.qkv_bias)
    yield from _linear(m, "attention.out", m.d_model, q, bias=m.out_bias)


def _latent(m: Model, c: Latent) -> Iterator[Tensor]:
    """Down to the latents, up to the heads; the biases of q, k and v stand on the way down."""
    queries, keys = m.heads * c.head, m.heads * (c.nope + c.value)
    if c.q_rank:
        yield from _linear(m, "attention.q_a", c.q_rank, m.d_model, bias=m.qkv_bias)
        yield from _linear(m, "attention.q_b", queries, c.q_rank, bias=False)
    else:
        yield from _linear(m, "attention.q", queries, m.d_model, bias=False)
    yield from _linear(m, "attention.kv_a", c.kv_rank + c.rope, m.d_model, bias=m.qkv_bias)
    yield from _linear(m, "attention.kv_b", keys, c.kv_rank, bias=False)
    yield from _linear(m, "attention.out", m.d_model, m.heads * c.value, bias=m.out_bias)


def _feed_forward(m: Model) -> Iterator[Tensor]:
    dense = m.layers - m.mixture_layers
    if dense:
        yield from _dense(m, dense)
    if m.mixture_layers:
        yield from _mixture(m, m.mixture_layers)


def _dense(m: Model, layers: int) -> Iterator[Tensor]:
    more: dict[str, Any] = {"bias": m.ff_bias, "copies": layers}
    parts = {"gate": m.d_ff, "up": m.d_ff} if m.gated else {"up": m.d_ff}
    if m.gated and m.fused_gate:
        parts = {"gate_up": 2 * m.d_ff}
    for name, outputs in parts.items():
        yield from _linear(m, f"feed_forward.{name}", outputs, m.d_model, **more)
    yield from _linear(m, "feed_forward.down", m.d_model, m.d_ff, **more)


def _mixture(m: Model, copies: int) -> Iterator[Tensor]:
    """Router and experts; gate and up of all experts lie in one tensor, their down in another."""
    part, where = "feed_forward", "layers.feed_forward."
    plain = record_of(m.family).linear_router
    yield Tensor(f"{where}router", (m.experts, m.d_model), part, copies, linear=plain)
    widths = {"experts_up": (2 * m.expert_ff, m.d_model), "experts_down": (m.d_model, m.expert_ff)}
    for name in ("experts_up", "experts_down"):
        outputs, inputs = widths[name]
        shape = (inputs, outputs) if m.expert_rows else (outputs, inputs)
        yield Tensor(f"{where}{name}", (m.experts,) + shape, part, copies)
        if m.expert_bias:
            yield Tensor(f"{where}{name}.bias", (m.experts, outputs), part, copies)
    if m.expert_bias:
        yield Tensor(f"{where}router.bias", (m.experts,), part, copies)
    if m.shared_ff:
        into = (m.shared_ff, m.d_model)
        for name in ("gate", "up"):
            yield from _linear(m, f"feed_forward.shared_{name}", *into, bias=False, copies=copies)
        yield from _linear(
            m, "feed_forward.shared_down", m.d_model, m.shared_ff, bias=False, copies=copies
        )
        if m.shared_gated:
            yield Tensor(f"{where}shared_router", (1, m.d_model), part, copies, linear=True)


def _norms(m: Model) -> Iterator[Tensor]:
    if not m.norm_affine:
        return
    norms = [(f"layers.{name}", m.d_model, m.layers) for name in BLOCK_NORMS[: m.block_norms]]
    if m.qk_norm:
        widths = {"q": m.head_dim, "k": m.head_dim}
        if m.wide_qk_norm:
            widths = {"q": m.heads * m.head_dim, "k": m.kv_heads * m.head_dim}
        norms += [(f"layers.attention.{x}_norm", widths[x], m.layers) for x in "qk"]
    if m.latent is not None:
        ranks = {"q_a": m.latent.q_rank, "kv_a": m.latent.kv_rank}
        norms += [(f"layers.attention.{x}_norm", r, m.layers) for x, r in ranks.items() if r]
    if m.final_norm:
        norms += [("final_norm", m.d_model, 1)]
    for name, width, copies in norms:
        yield Tensor(name, (width,), "norm", copies)
        if m.norm == "layernorm" and m.norm_bias:
            yield Tensor(f"{name}.bias", (width,), "norm", copies)


def _value_embeddings(m: Model) -> Iterator[Tensor]:
    shape, copies = (m.vocab, m.kv_heads * m.head_dim), m.value_embedding_layers
    yield Tensor("layers.value_embedding", shape, "value_embedding", copies)
    gate = (m.kv_heads, VALUE_GATE_WIDTH)
    yield Tensor("layers.attention.value_gate", gate, "attention", copies, linear=True)


def _residual_scalars(m: Model) -> Iterator[Tensor]:
    yield Tensor("resid_lambdas", (m.layers,), "other")
    yield Tensor("x0_lambdas", (m.layers,), "other")
    yield Tensor("smear_gate", (1, SMEAR_GATE_WIDTH), "other", linear=True)
    yield Tensor("smear_lambda", (1,), "other")
    yield Tensor("backout_lambda", (1,), "other")
