"""Tied embeddings: one table for the words that come in and the words that go out.

V vocabulary · D model width · P_tied values of the table, V · D · b bytes per value
"""

from __future__ import annotations

from ..formats import storage
from ..units import whole
from .optimizer import state
from .weights import embedding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..formats import Format


def head(vocab: int, *, d_model: int, tied: bool) -> int:
    """Parameters of the output head beside those of the embedding.

    Formula     0 where the head is the embedding, else V · D
    Shapes      [V, D]
    Unit        parameters, a whole number
    Source      Press and Wolf 2017, arXiv:1608.05859
    Leaves out  a bias, which no head of this book has; the second copy that pipeline parallelism
                keeps at its last stage
    Raises      ValueError for a negative width
    """
    table = embedding(vocab, d_model=d_model)
    return 0 if tied else table


def spared(
    vocab: int,
    *,
    d_model: int,
    weights: str | Format = "bf16",
    gradients: str | Format = "bf16",
    optimizer: str = "adamw",
    states: str | Format = "bf16",
) -> int:
    """Bytes that a tied head spares from step to step: its weights, gradients and states.

    Formula     V · D · (b of the weights + b of the gradients) + the optimizer's states of [V, D]
    Shapes      one table [V, D] less; Muon and GaLore leave heads to AdamW
    Unit        bytes, a whole number
    Source      Press and Wolf 2017, arXiv:1608.05859; `optimizer.state`
    Leaves out  a master copy; activations and logits, which stay as they are
    Raises      ValueError for a negative width, an unknown format or optimizer
    """
    table = head(vocab, d_model=d_model, tied=False)
    kept = state(optimizer, shape=(vocab, d_model), format=states, hidden=False)
    return storage(table, weights) + storage(table, gradients) + kept


def waiting(count: int, *, micro_batches: int = 1, format: str | Format = "fp32") -> int:
    """Bytes of a tied table's gradients beside `.grad`, at the end of the last backward pass.

    Formula     k = 1: 2 · P_tied · b;  k > 1: 3 · P_tied · b
    Shapes      [V, D] each. The head's gradient comes first and waits through the whole backward
                pass for the embedding's; their sum is a third table, which becomes `.grad` (k = 1)
                or is added to it (k > 1)
    Unit        bytes, a whole number
    Source      torch, torch/csrc/autograd/input_buffer.cpp, `accumulate`: two gradients of one
                tensor are added out of place
    Leaves out  the narrow gradients under autocast that each wide one is cast from
    Raises      ValueError for k = 0, a negative count or an unknown format
    """
    if whole("micro_batches", micro_batches) == 0:
        raise ValueError("micro_batches=0; a step needs at least one micro-batch")
    tables = 2 if micro_batches == 1 else 3
    return storage(tables * whole("count", count), format)
