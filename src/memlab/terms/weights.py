"""Weights: how many parameters each part of a decoder holds, and the bytes that they take.

Letters: L layers, D model width, F feed-forward width, N query heads, K key/value heads, H head
width, V vocabulary, P parameters. Counts are of one layer where a layer is meant; the caller
multiplies by L. Plain enough to run under MicroPython in the page's calculator.
"""

from __future__ import annotations

from ..formats import storage
from ..units import whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..formats import Format


def weights(count: int, *, format: str | Format, row: int | None = None) -> int:
    """Bytes of P parameters stored in one format, scales and padding included.

    Formula     P · bits / 8, plus what the format adds per block and per tensor
    Unit        bytes, a whole number
    Source      memlab.formats names the source of each format
    Leaves out  other copies of the same parameters (a master copy, a tied head stored twice),
                buffers, and the allocator's rounding
    Raises      ValueError for an unknown format or a negative count
    """
    return storage(count, format, row=row)


def linear(inputs: int, *, outputs: int, bias: bool = False) -> int:
    """Parameters of one linear layer.

    Formula     inputs · outputs (+ outputs with a bias)
    Shapes      weight: [outputs, inputs], bias: [outputs]
    Unit        parameters, a whole number
    Source      https://docs.pytorch.org/docs/stable/generated/torch.nn.Linear.html
    Raises      ValueError for a negative width
    """
    return whole("inputs", inputs) * whole("outputs", outputs) + (outputs if bias else 0)


def group_size(heads: int, *, kv_heads: int) -> int:
    """Query heads that share one key/value head: 1 is MHA, N is MQA, between them GQA.

    Formula     N / K
    Unit        heads, a whole number
    Source      Ainslie et al. 2023, arXiv:2305.13245
    Raises      ValueError where N is not a multiple of K
    """
    if whole("kv_heads", kv_heads) == 0 or whole("heads", heads) % kv_heads:
        raise ValueError(
            f"N={heads} is not a multiple of K={kv_heads} (query heads per key/value head)"
        )
    return heads // kv_heads


def attention(
    d_model: int,
    *,
    heads: int,
    kv_heads: int,
    head_dim: int,
    qkv_bias: bool = False,
    out_bias: bool = False,
) -> int:
    """Parameters of the four projections of one attention layer.

    Formula     2 · D · H · (N + K), plus biases (N + 2K) · H on q, k, v and D on the output
    Shapes      q: [N·H, D], k and v: [K·H, D], out: [D, N·H]; fusing q, k, v changes no count
    Unit        parameters, a whole number
    Source      Vaswani et al. 2017, arXiv:1706.03762; Ainslie et al. 2023, arXiv:2305.13245
    Leaves out  the norms on queries and keys (count them with `norm`), rotary tables (a buffer)
    Raises      ValueError for a negative width and where N is not a multiple of K
    """
    group_size(heads, kv_heads=kv_heads)
    q = linear(d_model, outputs=heads * head_dim, bias=qkv_bias)
    k = linear(d_model, outputs=kv_heads * head_dim, bias=qkv_bias)
    return q + 2 * k + linear(heads * head_dim, outputs=d_model, bias=out_bias)


def latent_attention(
    d_model: int,
    *,
    heads: int,
    q_latent: int,
    kv_latent: int,
    nope_dim: int,
    rope_dim: int,
    v_dim: int,
) -> int:
    """Parameters of the projections of one layer of multi-head latent attention, its norms too.

    Formula     (D + 1) · q' + q' · N · (n + r) + D · (c + r) + c + c · N · (n + v) + N · v · D
    Shapes      q down: [q', D], up: [N·(n + r), q']; keys and values down: [c + r, D], up:
                [N·(n + v), c]; out: [D, N·v]; a norm on each latent: [q'], [c]. q' = 0: queries
                come from D at once, [N·(n + r), D]
    Unit        parameters, a whole number
    Source      DeepSeek-AI 2024, arXiv:2405.04434, section 2.1; transformers,
                modeling_deepseek_v3.py: DeepseekV3Attention
    Leaves out  biases
    Raises      ValueError for a negative width
    """
    queries = whole("heads", heads) * (whole("nope_dim", nope_dim) + whole("rope_dim", rope_dim))
    q = linear(d_model, outputs=queries)
    if whole("q_latent", q_latent):
        q = linear(d_model, outputs=q_latent) + norm(q_latent)
        q += linear(q_latent, outputs=queries)
    down = linear(d_model, outputs=whole("kv_latent", kv_latent) + rope_dim) + norm(kv_latent)
    up = linear(kv_latent, outputs=heads * (nope_dim + whole("v_dim", v_dim)))
    return q + down + up + linear(heads * v_dim, outputs=d_model)


def feed_forward(d_model: int, *, d_ff: int, gated: bool, bias: bool = False) -> int:
    """Parameters of one feed-forward layer, with or without a gate.

    Formula     2 · D · F, or 3 · D · F with a gate; biases add F + D, or 2 · F + D
    Shapes      gate and up: [F, D], down: [D, F]
    Unit        parameters, a whole number
    Source      Vaswani et al. 2017, arXiv:1706.03762; gated: Shazeer 2020, arXiv:2002.05202
    Leaves out  mixtures of experts
    Raises      ValueError for a negative width
    """
    up = linear(d_model, outputs=d_ff, bias=bias)
    return up * (2 if gated else 1) + linear(d_ff, outputs=d_model, bias=bias)


def norm(width: int, *, bias: bool = False) -> int:
    """Parameters of one normalization: RMSNorm has a weight, LayerNorm a weight and a bias.

    Formula     width, or 2 · width with a bias
    Shapes      weight and bias: [width]; width is D, or H for the norms on queries and keys
    Unit        parameters, a whole number
    Source      Ba et al. 2016, arXiv:1607.06450; Zhang and Sennrich 2019, arXiv:1910.07467
    Raises      ValueError for a negative width
    """
    return whole("width", width) * (2 if bias else 1)


def embedding(vocab: int, *, d_model: int) -> int:
    """Parameters of the token embedding, and of an output head with weights of its own.

    Formula     V · D
    Shapes      [V, D]
    Unit        parameters, a whole number
    Source      tied to the head: Press and Wolf 2017, arXiv:1608.05859
    Leaves out  the output head: `tied.head`
    Raises      ValueError for a negative width
    """
    return linear(d_model, outputs=vocab)


def positions(tokens: int, *, d_model: int, offset: int = 0) -> int:
    """Parameters of learned positions; rotary positions have none.

    Formula     (tokens + offset) · D
    Shapes      [tokens + offset, D]; OPT keeps 2 rows more than its longest sequence
    Unit        parameters, a whole number
    Source      Radford et al. 2019 (GPT-2); Zhang et al. 2022, arXiv:2205.01068 (OPT)
    Raises      ValueError for a negative width
    """
    return linear(d_model, outputs=whole("tokens", tokens) + whole("offset", offset))


def value_embedding(vocab: int, *, kv_heads: int, head_dim: int) -> int:
    """Parameters of one value embedding: a table that adds to the values of one layer.

    Formula     V · K · H
    Shapes      [V, K·H]
    Unit        parameters, a whole number
    Source      Zhou et al. 2024, arXiv:2410.17897 (value residuals), as built in nanochat
    Leaves out  the gate that mixes it in
    Raises      ValueError for a negative width
    """
    return linear(whole("kv_heads", kv_heads) * whole("head_dim", head_dim), outputs=vocab)
