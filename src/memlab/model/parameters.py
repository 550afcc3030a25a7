"""How many parameters each component of a model has, by the closed formulas of the chapter.

`tensors.py` says the same tensor by tensor; the tests hold the two against each other.
"""

from __future__ import annotations

from ..families import record_of
from ..terms import experts, tied, weights
from .tensors import COMPONENTS, SMEAR_GATE_WIDTH, VALUE_GATE_WIDTH

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from .latent import Latent
    from .model import Model


def parameters_of(model: Model) -> dict[str, int]:
    """Parameters by component; one that the model lacks is 0."""
    m = model
    parts = dict.fromkeys(COMPONENTS, 0)
    if record_of(m.family).recorded is not None:
        from .recorded import counted

        return counted(m, parts)
    parts["embedding"] = weights.embedding(m.vocab, d_model=m.embed_dim)
    if m.learned_positions:
        parts["positions"] = weights.positions(
            m.positions, d_model=m.d_model, offset=m.position_offset
        )
    parts["attention"] = _attention(m)
    parts["feed_forward"] = _feed_forward(m)
    parts["norm"] = _norms(m)
    parts["lm_head"] = tied.head(m.vocab, d_model=m.embed_dim, tied=m.tied)
    parts["value_embedding"] = m.value_embedding_layers * weights.value_embedding(
        m.vocab, kv_heads=m.kv_heads, head_dim=m.head_dim
    )
    parts["other"] = _other(m)
    return parts


def _attention(m: Model) -> int:
    layer = weights.attention(
        m.d_model,
        heads=m.heads,
        kv_heads=m.kv_heads,
        head_dim=m.head_dim,
        qkv_bias=m.qkv_bias,
        out_bias=m.out_bias,
    )
    if m.latent is not None:
        layer = _latent(m, m.latent)
    if m.sinks:
        layer += m.heads
    return m.layers * layer + m.value_embedding_layers * weights.linear(
        VALUE_GATE_WIDTH, outputs=m.kv_heads
    )


def _latent(m: Model, c: Latent) -> int:
    """The matrices of latent attention: down to the latents, up to the heads, and out."""
    queries, keys = m.heads * c.head, m.heads * (c.nope + c.value)
    count = weights.linear(m.d_model, outputs=c.kv_rank + c.rope, bias=m.qkv_bias)
    count += weights.linear(c.kv_rank, outputs=keys)
    count += weights.linear(m.heads * c.value, outputs=m.d_model, bias=m.out_bias)
    if not c.q_rank:
        return count + weights.linear(m.d_model, outputs=queries)
    count += weights.linear(m.d_model, outputs=c.q_rank, bias=m.qkv_bias)
    return count + weights.linear(c.q_rank, outputs=queries)


def _feed_forward(m: Model) -> int:
    dense = weights.feed_forward(m.d_model, d_ff=m.d_ff, gated=m.gated, bias=m.ff_bias)
    count = (m.layers - m.mixture_layers) * dense
    if m.mixture_layers:
        count += m.mixture_layers * experts.mixture(
            m.d_model,
            experts=m.experts,
            expert_ff=m.expert_ff,
            shared_ff=m.shared_ff,
            shared_gated=m.shared_gated,
            bias=m.expert_bias,
        )
    return count


def _norms(m: Model) -> int:
    if not m.norm_affine:
        return 0
    bias = m.norm == "layernorm" and m.norm_bias
    block, head = weights.norm(m.d_model, bias=bias), weights.norm(m.head_dim, bias=bias)
    heads = m.heads + m.kv_heads if m.wide_qk_norm else 2
    layer = m.block_norms * block + (heads * head if m.qk_norm else 0)
    if m.latent is not None:
        layer += sum(weights.norm(r, bias=bias) for r in (m.latent.kv_rank, m.latent.q_rank))
    return m.layers * layer + (block if m.final_norm else 0)


def _other(m: Model) -> int:
    count = 0
    if m.embed_dim != m.d_model:
        count += 2 * weights.linear(m.embed_dim, outputs=m.d_model)
    if m.residual_scalars:
        # Two scalars a layer, then the smear gate with its scalar and the backout scalar.
        count += 2 * m.layers + weights.linear(SMEAR_GATE_WIDTH, outputs=1) + 1 + 1
    return count
