"""What transformers' decoders share: embeddings, eager attention, the loss."""

from __future__ import annotations

from ..core.graph import Tensor
from ..core.setting import Setting
from ..core.storage_log import Dim
from ..ops import Ops
from ..ops.dropout import dropout as dropout

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def embedded(f: Ops, table: Tensor, ids: Tensor) -> Tensor:
    """The embeddings of token ids; inputs_embeds, which are such embeddings, as they are."""
    return f.embedding(table, ids) if ids.dtype == "int64" else ids


def eager_shared_heads(
    f: Ops,
    s: Setting,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor,
    *,
    rows: bool = True,
    cap: bool = False,
    upcast: bool = True,
) -> tuple[Tensor, Tensor]:
    """Attention spelled out: scores, mask, softmax in fp32, weighted values.

    upcast      the softmax is in fp32 whatever the scores are; under autocast it always is

    rows        q and k lie in rows of all heads, as v always does
    cap         scores are bent towards a largest one: tanh
    """
    keys = f.repeat_heads(k, s.N)
    values = f.repeat_heads(v, s.N)
    apart = (rows and s.T > 1, (rows or k.shape[1] == 1) and strided(f, s, k, keys))
    weights = f.scale(f.matmul(q, keys, keys.shape[2], strided=apart))
    if cap:
        weights = f.scale(weights, "div")
        weights = f.tanh(weights)
        weights = f.scale(weights)
    weights = f.add(weights, mask)
    if upcast:
        weights = f.to(f.softmax(f.to(weights, "fp32")), q.dtype)
    else:
        weights = f.softmax(weights)
    weights = dropout(f, weights, s.attention_dropout)
    apart_v = strided(f, s, v, values) or (s.model.latent is not None and s.seen > 1)
    out = f.matmul(weights, values, s.values, strided=(False, apart_v))
    if s.N > 1 and s.T > 1:
        if s.B > 1:
            out = f.folded(out)
        out = f.copy(out)
    return out, weights


def strided(f: Ops, s: Setting, x: Tensor, repeated: Tensor) -> bool:
    """Whether heads are not next to each other in memory: as projected, or one shared by all.

    A cast of a shared one writes it out for each head.
    """
    cast = f.autocast is not None and x.dtype != f.autocast
    return (repeated is x and not s.cached) or (x.shape[1] == 1 and not cast)


def head_loss(
    f: Ops,
    s: Setting,
    x: Tensor,
    head: Tensor,
    make: Callable[[Tensor], Tensor] | None = None,
) -> Any:
    """The output head and the loss; in chunks, as lab.models.common computes it from the body.

    With TRL's fused head, and for a loss of one's own, what the model returns: whoever called it
    makes the loss from it.

    make        the logits of x; None: a product with the head
    """
    f.begin_loss()
    if s.fused_head:
        from ..loops.fused_head import fused_head

        return fused_head(f, s, x, head)
    if s.library_loss:
        from ..loops.library_losses import library_loss

        return library_loss(f, s.library_loss, x, head)
    if s.loss_chunks:
        from ..loops.losses import chunked_next_token_loss

        return chunked_next_token_loss(f, x, head, s.loss_chunks)
    logits = make(x) if make else f.linear(x, head)
    if s.keeps_output:
        f.output = (logits,)
    if s.own_loss:
        return logits
    return causal_lm_loss(f, logits, counted=s.counted)


def causal_lm_loss(f: Ops, logits: Tensor, *, counted: bool = False) -> Tensor:
    """Cross-entropy of every next token, in fp32: labels shifted, then copied.

    counted     a sum, divided by the labels of all micro-batches, as Trainer counts them
    """
    B, T, V = logits.shape
    wide = f.to(logits, "fp32")
    if f.shifted is not None:
        return f.cross_entropy(f.view(wide, Dim("B·T", B * T), V), f.view(f.shifted, B, T))
    labels = f.new("pad", (B, Dim("(T+1)", T + 1)), "int64")
    shifted = labels if B == 1 else f.new("clone", (B, T), "int64")  # one row is contiguous
    loss = f.cross_entropy(f.view(wide, Dim("B·T", B * T), V), shifted)
    if counted:
        loss = f.scale(loss, "div")
    del labels
    return loss
