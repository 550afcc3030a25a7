"""Recurrent layers: a state of one size in the place of keys and values, as Mamba layers have it.

L such layers · B sequences · N heads · H head width · S state width · C channels · W kernel width ·
b bytes
"""

from __future__ import annotations

from ..formats import storage
from ..units import whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..formats import Format


def state(
    layers: int,
    *,
    heads: int,
    head_dim: int,
    state_dim: int,
    batch: int,
    format: str | Format = "fp32",
) -> int:
    """Bytes of the recurrent state: the same after 10 tokens and after a million.

    Formula     L · B · N · H · S · b
    Shapes      Mamba-2: [B, N, H, S]; gated linear attention: [B, value heads, key width, value
                width], with N, S and H for them
    Unit        bytes, a whole number
    Source      Dao and Gu 2024, arXiv:2405.21060; transformers 5.23 keeps it in fp32
    Leaves out  the layers with attention, which keep keys and values: `kv_cache`
    Raises      TypeError or ValueError for a count below zero or an unknown format
    """
    count = whole("batch", batch) * whole("heads", heads) * whole("head_dim", head_dim)
    return whole("layers", layers) * storage(count * whole("state_dim", state_dim), format)


def convolution(
    layers: int, *, channels: int, kernel: int, batch: int, format: str | Format = "bf16"
) -> int:
    """Bytes of the last inputs of the short convolution before the state.

    Formula     L · B · C · W · b
    Shapes      [B, C, W]; Mamba-2: C = N · H + 2 · groups · S; gated linear attention: C = 2 · key
                heads · key width + value heads · value width
    Unit        bytes, a whole number
    Source      Gu and Dao 2023, arXiv:2312.00752; transformers, cache_utils.py
    Raises      as `state`
    """
    count = whole("batch", batch) * whole("channels", channels) * whole("kernel", kernel)
    return whole("layers", layers) * storage(count, format)
