"""Mixtures of experts: what a layer of experts weighs, and what it keeps for backward.

Letters: D model width, X experts, k of them for each token, M the width of one expert, R = B·T
tokens of a batch, E ranks with R tokens each, b bytes a value. A gated expert is three matrices:
gate, up and down.
"""

from __future__ import annotations

from ..formats import storage
from ..units import at_least_one, whole
from .weights import linear

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..formats import Format


def expert(d_model: int, *, expert_ff: int, bias: bool = False) -> int:
    """Parameters of one gated expert.

    Formula     3 · D · M, and with biases 2 · M + D more
    Shapes      gate and up: [M, D], down: [D, M]; biases: [M] twice, [D]
    Unit        parameters, a whole number
    Source      Shazeer et al. 2017, arXiv:1701.06538; gated: Shazeer 2020, arXiv:2002.05202
    Raises      ValueError for a negative width
    """
    up = linear(d_model, outputs=expert_ff, bias=bias)
    return 2 * up + linear(expert_ff, outputs=d_model, bias=bias)


def mixture(
    d_model: int,
    *,
    experts: int,
    expert_ff: int,
    shared_ff: int = 0,
    shared_gated: bool = False,
    bias: bool = False,
) -> int:
    """Parameters of one layer of experts, its router included: all of them are in memory.

    Formula     X · 3 · D · M + X · D, and with shared experts of width M' 3 · D · M' (+ D: gated);
                biases add X · (2 · M + D) + X
    Shapes      router: [X, D]; gate and up of all experts: [X, 2M, D], their down: [X, D, M]
    Unit        parameters, a whole number
    Source      transformers, modeling_*.py: Qwen3MoeSparseMoeBlock, MixtralSparseMoeBlock,
                OlmoeSparseMoeBlock, Qwen2MoeSparseMoeBlock
    Leaves out  devices that divide the experts between them
    Raises      ValueError for a negative width
    """
    return _router(d_model, experts, bias) + active_part(
        d_model,
        experts_per_token=experts,
        expert_ff=expert_ff,
        shared_ff=shared_ff,
        shared_gated=shared_gated,
        bias=bias,
    )


def active(
    d_model: int,
    *,
    experts: int,
    experts_per_token: int,
    expert_ff: int,
    shared_ff: int = 0,
    shared_gated: bool = False,
    bias: bool = False,
) -> int:
    """Parameters of one layer of experts that one token meets.

    Formula     k · 3 · D · M + X · D, and shared experts and biases as in `mixture`
    Unit        parameters, a whole number
    Source      Fedus et al. 2021, arXiv:2101.03961: operations follow these, memory does not
    Raises      ValueError for more experts a token than there are, and for a negative width
    """
    if whole("experts_per_token", experts_per_token) > whole("experts", experts):
        raise ValueError(f"experts_per_token={experts_per_token}; there are X={experts} experts")
    return _router(d_model, experts, bias) + active_part(
        d_model,
        experts_per_token=experts_per_token,
        expert_ff=expert_ff,
        shared_ff=shared_ff,
        shared_gated=shared_gated,
        bias=bias,
    )


def active_part(
    d_model: int,
    *,
    experts_per_token: int,
    expert_ff: int,
    shared_ff: int,
    shared_gated: bool,
    bias: bool = False,
) -> int:
    """So many experts and what is shared, without a router.

    Formula     k · 3 · D · M + 3 · D · M' (+ D); biases add k · (2 · M + D)
    Unit        parameters, a whole number
    Source      as `mixture`
    Raises      ValueError for a negative width
    """
    shared = expert(d_model, expert_ff=shared_ff)
    if shared_gated and shared_ff:
        shared += linear(d_model, outputs=1)
    one = expert(d_model, expert_ff=expert_ff, bias=bias)
    return whole("experts_per_token", experts_per_token) * one + shared


def permuted(
    tokens: int, *, d_model: int, experts_per_token: int, format: str | Format = "bf16"
) -> int:
    """Bytes of the tokens laid out expert by expert: each of them k times.

    Formula     k · R · D · b
    Shapes      [R·k, D], sorted by expert; how many rows an expert has changes no byte
    Unit        bytes, a whole number
    Source      transformers, integrations/moe.py: grouped_mm_experts_forward
    Leaves out  the order itself, 8 bytes a row: see `kept`
    Raises      ValueError for a negative count and an unknown format
    """
    rows = whole("tokens", tokens) * whole("experts_per_token", experts_per_token)
    return storage(rows * whole("d_model", d_model), format)


def kept(
    tokens: int,
    *,
    d_model: int,
    experts: int,
    experts_per_token: int,
    expert_ff: int,
    format: str | Format = "bf16",
    scores: str | Format | None = None,
    normalized: bool = False,
) -> int:
    """Bytes that one layer of experts keeps for backward, if its products are grouped.

    Formula     k·R · (2 · D · b + 4 · M · b + s + 32) + 4 · R · X + 4 · X; where the weights of a
                token's experts are made to add to one, 4 · k·R + 4 · R more
    Shapes      tokens by expert and what comes of them: [k·R, D]; gate and up: [k·R, 2M], silu of
                the gate, and the product of both: [k·R, M]; a weight for each row: s bytes; four
                orders of rows (int64): the experts chosen, the token of a row, there and back;
                probabilities in fp32: [R, X]; where each expert's rows end (int32): [X]
    Unit        bytes, a whole number
    Source      transformers, integrations/moe.py: grouped_mm_experts_forward, the default;
                torch, derivatives.yaml: _grouped_mm keeps both factors and the offsets
    Leaves out  the layer's input, which the norm before it makes; shared experts; the weights;
                routers of groups (glm4_moe), which keep no probabilities but scores
    Raises      ValueError for a negative count and an unknown format
    """
    rows = whole("tokens", tokens) * whole("experts_per_token", experts_per_token)
    wide = 2 * whole("d_model", d_model) + 4 * whole("expert_ff", expert_ff)
    total = storage(rows * wide, format) + storage(rows, format if scores is None else scores)
    total += 32 * rows + 4 * tokens * whole("experts", experts) + 4 * experts
    return total + (4 * rows + 4 * tokens if normalized else 0)


def arriving(
    tokens: int, *, experts: int, experts_per_token: int, ranks: int, even: bool = True
) -> int:
    """Rows that arrive at one of E ranks which divide the experts between them.

    Formula     even: k · R; at most, when all tokens of all ranks choose its experts:
                E · R · min(k, X / E)
    Shapes      every rank has R tokens of its own; a row is one token for one expert
    Unit        rows, a whole number; even is rounded up
    Source      Lepikhin et al. 2020 (GShard), arXiv:2006.16668, section 2.2
    Leaves out  a limit for each expert (capacity), beyond which tokens are dropped
    Raises      ValueError for a negative count, and for ranks that do not divide the experts
    """
    if whole("experts", experts) % at_least_one("ranks", ranks):
        raise ValueError(f"ranks={ranks} do not divide X={experts} experts")
    rows = whole("tokens", tokens)
    if even:
        return rows * whole("experts_per_token", experts_per_token)
    return ranks * rows * min(whole("experts_per_token", experts_per_token), experts // ranks)


def kept_divided(
    tokens: int,
    *,
    d_model: int,
    experts: int,
    experts_per_token: int,
    expert_ff: int,
    ranks: int,
    rows: int,
    format: str | Format = "bf16",
) -> int:
    """Bytes that one of E ranks keeps of a layer of experts, of whose rows so many arrive at it.

    Formula     k·R · (D · b + b + 32) + r · (D · b + 4 · M · b + 16) + 4 · R · X + 4 · X / E
    Shapes      k·R follows the rank's own tokens: results [k·R, D] that came back, their weights,
                four orders of rows (int64). r = `rows` follows the routing: rows that arrived
                [r, D], gate and up [r, 2M], silu of the gate and the product [r, M], two orders
    Unit        bytes, a whole number
    Source      memlab.lab.expert_parallel, a toy that is short enough to read
    Leaves out  the layer's input; weights; buffers that libraries set aside for the largest r
    Raises      ValueError for a negative count, an unknown format, and ranks that do not divide
                the experts
    """
    own = arriving(tokens, experts=experts, experts_per_token=experts_per_token, ranks=ranks)
    total = storage(own * (whole("d_model", d_model) + 1), format) + 32 * own
    wide = d_model + 4 * whole("expert_ff", expert_ff)
    total += storage(whole("rows", rows) * wide, format) + 16 * rows
    return total + 4 * tokens * experts + 4 * (experts // ranks)


def _router(d_model: int, experts: int, bias: bool) -> int:
    return linear(d_model, outputs=experts, bias=bias)
