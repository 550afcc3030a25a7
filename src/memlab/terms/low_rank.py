"""Low-rank optimizer state: GaLore, which remembers a gradient's most important directions only.

R rows · C columns of a matrix · r directions kept · b bytes per value
"""

from __future__ import annotations

from ..formats import storage
from ..units import whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..formats import Format


def galore(shape: Sequence[int], *, rank: int, format: str | Format = "fp32") -> int:
    """Bytes of GaLore's AdamW for one matrix: a basis, and two moments of the projected gradient.

    Formula     r · (min(R, C) + 2 · max(R, C)) · b, for r up to min(R, C)
    Shapes      basis [min(R, C), r]; exp_avg and exp_avg_sq [r, max(R, C)]
    Unit        bytes, a whole number
    Source      Zhao et al. 2024, arXiv:2403.03507, table 1; memlab.lab.galore
    Leaves out  the gradient, which is as large as the matrix; the singular value decomposition
    Raises      ValueError for anything but a matrix, and for a rank below 1
    """
    short, long = _sides(shape)
    if whole("rank", rank) < 1:
        raise ValueError(f"rank={rank}; at least one direction is needed")
    kept = min(rank, short)
    return storage(kept * short, format) + 2 * storage(kept * long, format)


def largest_rank(shape: Sequence[int], *, bytes: int, format: str | Format = "fp32") -> int:
    """The most directions whose state takes no more than so many bytes; beyond it GaLore costs.

    Formula     bytes / ((min(R, C) + 2 · max(R, C)) · b), rounded down, min(R, C) at most
    Unit        directions, a whole number
    Source      solved from `galore`
    Raises      as `galore`
    """
    short, long = _sides(shape)
    one = galore(shape, rank=1, format=format)
    return min(whole("bytes", bytes) // one, short) if one else short


def _sides(shape: Sequence[int]) -> tuple[int, int]:
    if len(shape) != 2:
        raise ValueError(f"shape={tuple(shape)} is not a matrix; GaLore projects those only")
    sides = sorted(whole("size", size) for size in shape)
    return sides[0], sides[1]
