"""KV cache: the keys and values that decoding keeps of every token it has read.

L layers · K key/value heads · H head width · B sequences · T tokens of each · W window · b bytes

A format with scales (int8/64, fp8_e4m3/128 …) has its blocks along the head width H: they restart
with every token and head, so that a token can be added without touching the others.
Long, because each kind of cache has its formula, with shapes, units and source beside it.
"""

from __future__ import annotations

from ..formats import storage
from ..units import whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..formats import Format


def kv_cache(
    layers: int,
    *,
    kv_heads: int,
    head_dim: int,
    batch: int,
    tokens: int,
    format: str | Format = "bf16",
) -> int:
    """Bytes of the keys and values kept for decoding.

    Formula     2 · L · B · T · K · H · b: MHA with K = N, GQA with K < N, MQA with K = 1
    Shapes      k, v: [B, K, T, H] in each of L layers; H is the head's own width, not D / N
    Unit        bytes, a whole number
    Source      Shazeer 2019, arXiv:1911.02150; Ainslie et al. 2023, arXiv:2305.13245
    Leaves out  the copy made while a cache grows (`growth`), pages (`paged_cache`), the query;
                layers that read another layer's cache (`shared_cache`); the wide copies of one
                layer from which a quantized cache is read
    Raises      TypeError or ValueError for a count below zero or an unknown format
    """
    count = whole("batch", batch) * whole("tokens", tokens)
    count *= whole("kv_heads", kv_heads) * whole("head_dim", head_dim)
    return 2 * whole("layers", layers) * storage(count, format, row=head_dim)


def per_token(layers: int, *, kv_heads: int, head_dim: int, format: str | Format = "bf16") -> int:
    """Bytes that one more token adds to the cache of one sequence.

    Formula     2 · L · K · H · b
    Unit        bytes, a whole number
    Source      Kwon et al. 2023, arXiv:2309.06180, section 3: 800 KiB for OPT-13B
    Leaves out  windowed layers, which stop growing at W tokens
    Raises      as `kv_cache`
    """
    return kv_cache(layers, kv_heads=kv_heads, head_dim=head_dim, batch=1, tokens=1, format=format)


def static_cache(
    layers: int,
    *,
    kv_heads: int,
    head_dim: int,
    batch: int,
    longest: int,
    format: str | Format = "bf16",
) -> int:
    """Bytes of a cache that is allocated once, for the longest sequence it may ever hold.

    Formula     2 · L · B · T_max · K · H · b + 8 · L, however few tokens have been read
    Shapes      k, v: [B, K, T_max, H] and the number of tokens so far (int64) in each layer
    Unit        bytes, a whole number
    Source      transformers, cache_utils.py, StaticLayer
    Raises      as `kv_cache`
    """
    return (
        kv_cache(
            layers, kv_heads=kv_heads, head_dim=head_dim, batch=batch, tokens=longest, format=format
        )
        + 8 * layers
    )


def windowed_cache(
    windows: Sequence[int | None],
    *,
    kv_heads: int,
    head_dim: int,
    batch: int,
    tokens: int,
    format: str | Format = "bf16",
) -> int:
    """Bytes of a cache in which some layers keep only the last W tokens.

    Formula     sum over layers of 2 · B · min(T, W) · K · H · b
    Shapes      windows: one entry a layer, its W, or None for a layer that keeps everything
    Unit        bytes, a whole number
    Source      Jiang et al. 2023 (Mistral 7B), arXiv:2310.06825, rolling buffer
    Leaves out  the moment after a long prompt: transformers' DynamicCache keeps a slice of the
                prompt's keys, which holds all T tokens until the next step (`kv_cache` there)
    Raises      ValueError for a window of 0; otherwise as `kv_cache`
    """
    total = 0
    for window in windows:
        kept = whole("tokens", tokens)
        if window is not None:
            if whole("window", window) == 0:
                raise ValueError("window=0; a token attends at least to itself (None: no window)")
            kept = min(kept, window)
        total += kv_cache(
            1, kv_heads=kv_heads, head_dim=head_dim, batch=batch, tokens=kept, format=format
        )
    return total


def shared_cache(
    windows: Sequence[int | None],
    *,
    shared: int,
    kv_heads: int,
    head_dim: int,
    batch: int,
    tokens: int,
    format: str | Format = "bf16",
) -> int:
    """Bytes of a cache whose last layers read the keys and values of earlier ones.

    Formula     sum over the first L - shared layers of 2 · B · min(T, W) · K · H · b
    Shapes      windows: one entry for each of the L layers, its W, or None; shared: how many of
                them, the last, own no cache (Gemma 3n E4B: 15 of 35)
    Unit        bytes, a whole number
    Source      transformers, configuration_gemma3n.py: num_kv_shared_layers; Brandon et al.
                2024 (cross-layer attention), arXiv:2405.12981
    Leaves out  as `windowed_cache`
    Raises      ValueError where every layer would read another's; otherwise as `windowed_cache`
    """
    if whole("shared", shared) >= max(1, len(windows)):
        raise ValueError(f"shared={shared} of L={len(windows)} layers; the first owns its cache")
    return windowed_cache(
        windows[: len(windows) - shared],
        kv_heads=kv_heads,
        head_dim=head_dim,
        batch=batch,
        tokens=tokens,
        format=format,
    )


def mla_cache(
    layers: int,
    *,
    latent: int,
    rope: int,
    batch: int,
    tokens: int,
    format: str | Format = "bf16",
    rope_format: str | Format | None = None,
) -> int:
    """Bytes of the cache of multi-head latent attention: one latent and one rotary key a token.

    Formula     L · B · T · (latent · b + rope · b_rope); no factor 2, no heads
    Shapes      latent: [B, T, latent], shared by keys and values; rope: [B, T, rope], shared by
                all heads (DeepSeek-V2 and V3: 512 and 64)
    Unit        bytes, a whole number
    Source      DeepSeek-AI 2024, arXiv:2405.04434, section 2.1
    Leaves out  keys and values expanded from the latent while attention runs, and the indexer's
                keys of DeepSeek-V3.2
    Raises      as `kv_cache`
    """
    count = whole("batch", batch) * whole("tokens", tokens)
    one = storage(count * whole("latent", latent), format, row=latent)
    other = format if rope_format is None else rope_format
    one += storage(count * whole("rope", rope), other, row=rope)
    return whole("layers", layers) * one


def growth(
    kv_heads: int,
    *,
    head_dim: int,
    batch: int,
    tokens: int,
    new: int = 1,
    format: str | Format = "bf16",
) -> int:
    """Bytes of the old copy that is alive while a growing cache takes in new tokens.

    Formula     B · (T - new) · K · H · b, for the T tokens that the cache holds afterwards
    Shapes      one tensor, the keys or the values of one layer: torch.cat writes the longer one
                before the shorter one goes. At the last layer all others are grown already, so
                the peak of a step is kv_cache + growth
    Unit        bytes, a whole number
    Source      transformers, cache_utils.py, DynamicLayer.update
    Leaves out  the new tokens' own keys and values, which are activations of the step
    Raises      ValueError where more tokens are new than there are; otherwise as `kv_cache`
    """
    if whole("new", new) > whole("tokens", tokens):
        raise ValueError(f"new={new} of tokens={tokens}; no more can be new than there are")
    return (
        kv_cache(
            1, kv_heads=kv_heads, head_dim=head_dim, batch=batch, tokens=tokens - new, format=format
        )
        // 2
    )


def pages(tokens: int, *, block: int = 16) -> int:
    """Pages that one sequence occupies: full ones and the last, which may be partly empty.

    Formula     ⌈T / block⌉
    Unit        pages of `block` tokens, a whole number
    Source      Kwon et al. 2023, arXiv:2309.06180; 16 tokens is vLLM's default
    Raises      ValueError for a block of 0 tokens or a negative count
    """
    if whole("block", block) == 0:
        raise ValueError("block=0; a page holds at least one token")
    return -(-whole("tokens", tokens) // block)


def paged_cache(
    layers: int,
    *,
    kv_heads: int,
    head_dim: int,
    lengths: Sequence[int],
    block: int = 16,
    format: str | Format = "bf16",
) -> int:
    """Bytes of a cache in pages, for sequences of different lengths.

    Formula     2 · L · Σ⌈T_i / block⌉ · block · K · H · b
    Shapes      lengths: the tokens of each sequence, T_i
    Unit        bytes, a whole number
    Source      Kwon et al. 2023, arXiv:2309.06180
    Leaves out  the block tables (one number a page), pages kept for a common prefix or unused
    Raises      as `pages` and `kv_cache`
    """
    held = sum([pages(tokens, block=block) for tokens in lengths]) * block
    return kv_cache(
        layers, kv_heads=kv_heads, head_dim=head_dim, batch=1, tokens=held, format=format
    )
