"""A text on several ranks: what attention saves, holds for a moment and sends.

c ranks · B batch · T tokens of the whole text · N query heads · K key/value heads · H head width ·
b bytes per value

Each rank has T/c neighbouring tokens, in everything but attention.
"""

from __future__ import annotations

from ..units import at_least_one, whole

WAYS = ("gathered", "ring", "ulysses")


def saved(
    batch: int,
    *,
    tokens: int,
    heads: int,
    kv_heads: int,
    head_dim: int,
    ranks: int,
    value_bytes: int = 2,
) -> int:
    """Bytes that one layer's attention saves for backward on one of c ranks, in each of the ways.

    Formula     (2 · N + 2 · K) · H · B · T/c · b + 4 · N · B · T/c
    Shapes      q and the output [B, N, T/c, H], k and v [B, K, T/c, H], one fp32 number for each
                query; with Ulysses [B, N/c, T, H] and so on: as many values
    Unit        bytes, a whole number
    Source      Liu et al. 2023 (ring), arXiv:2310.01889; Jacobs et al. 2023 (Ulysses),
                arXiv:2309.14509; memlab.lab.long_text
    Leaves out  keys and values that a program keeps gathered for backward
    Raises      ValueError where c does not divide T
    """
    q, kv, numbers = _parts(batch, tokens, heads, kv_heads, head_dim, ranks, value_bytes)
    return 2 * q + kv + numbers


def buffers(
    batch: int,
    *,
    tokens: int,
    heads: int,
    kv_heads: int,
    head_dim: int,
    ranks: int,
    way: str,
    value_bytes: int = 2,
) -> int:
    """Bytes that sending takes beside the rank's own q, k, v and output, in a forward pass.

    Formula     gathered: (c + 1) · p; ring: 2 · p; p = 2 · K · H · B · T/c · b, one rank's keys
                and values; ulysses: 2 · N · H · B · T/c · b
    Shapes      gathered: the piece that is sent, and those of all; ring: the piece in use, and the
                one that arrives; ulysses: what leaves, and what arrives, for the largest of q, k, v
                and the output
    Unit        bytes, a whole number
    Source      Grattafiori et al. 2024 (Llama 3), arXiv:2407.21783, section 3.3.2; as `saved`
    Leaves out  sending while the last piece is computed with, which takes one piece more
    Raises      as `saved`; ValueError for another way, and for Ulysses where c does not divide K
    """
    q, kv, _ = _parts(batch, tokens, heads, kv_heads, head_dim, ranks, value_bytes)
    _check(way, kv_heads, ranks)
    return {"gathered": (ranks + 1) * kv, "ring": 2 * kv, "ulysses": 2 * q}[way]


def sent(
    batch: int,
    *,
    tokens: int,
    heads: int,
    kv_heads: int,
    head_dim: int,
    ranks: int,
    way: str,
    value_bytes: int = 2,
) -> int:
    """Bytes that one rank sends for one layer's attention in a forward and a backward pass.

    Formula     gathered: 3 · (c - 1) · p: keys and values twice, their gradients once; ring:
                (3 · c - 2) · p: the gradients go all the way round; ulysses:
                2 · (2 · q + p) · (c - 1) / c, q = N · H · B · T/c · b
    Unit        bytes, a whole number
    Source      as `buffers`; memlab.lab.long_text
    Leaves out  a causal mask, with which a ring could leave out half of the pieces
    Raises      as `buffers`
    """
    q, kv, _ = _parts(batch, tokens, heads, kv_heads, head_dim, ranks, value_bytes)
    _check(way, kv_heads, ranks)
    if way == "gathered":
        return 3 * (ranks - 1) * kv
    if way == "ring":
        return (3 * ranks - 2) * kv
    return 2 * (2 * q + kv) // ranks * (ranks - 1)


def _parts(
    batch: int, tokens: int, heads: int, kv_heads: int, head_dim: int, ranks: int, value_bytes: int
) -> tuple[int, int, int]:
    """Bytes of one rank's q, of its k and v together, and of one number for each query."""
    if whole("tokens", tokens) % at_least_one("ranks", ranks):
        raise ValueError(f"ranks={ranks} do not divide T={tokens} (tokens)")
    rows = whole("batch", batch) * tokens // ranks
    wide = whole("head_dim", head_dim) * whole("value_bytes", value_bytes)
    q = rows * whole("heads", heads) * wide
    return q, 2 * rows * whole("kv_heads", kv_heads) * wide, 4 * rows * heads


def _check(way: str, kv_heads: int, ranks: int) -> None:
    if way not in WAYS:
        raise ValueError(f"way={way!r} is not described; known: {', '.join(WAYS)}")
    if way == "ulysses" and kv_heads % ranks:
        raise ValueError(f"ranks={ranks} do not divide K={kv_heads} (key/value heads)")
