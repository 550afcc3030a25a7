"""Sparse storage: what a matrix takes when its zeros are left out, and what their places cost.

R rows · C columns · n values that are not zero · b bytes per value · i bytes per index
"""

from __future__ import annotations

from ..formats import storage
from ..units import whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..formats import Format

INDEX_BYTES = (4, 8)


def coo(nonzero: int, *, format: str | Format = "fp32") -> int:
    """Bytes of a coordinate list: each value, its row and its column.

    Formula     n · (b + 2 · 8)
    Shapes      values [n], indices [2, n] of int64, the only kind that torch keeps here
    Unit        bytes, a whole number
    Source      torch.sparse_coo_tensor
    Raises      TypeError or ValueError for a count below zero or an unknown format
    """
    return storage(whole("nonzero", nonzero), format) + 2 * 8 * nonzero


def csr(rows: int, *, nonzero: int, format: str | Format = "fp32", index_bytes: int = 8) -> int:
    """Bytes of compressed rows: each value, its column, and where each row begins.

    Formula     n · (b + i) + (R + 1) · i
    Shapes      values [n], columns [n], starts [R + 1]
    Unit        bytes, a whole number
    Source      torch.sparse_csr_tensor; `to_sparse_csr` makes indices of 8 bytes
    Leaves out  n · 8 more after `to_sparse_csr` of a full matrix: it finds rows and columns in one
                tensor, of which the columns stay a view until somebody copies them
    Raises      as `coo`; ValueError for an index that has neither 4 nor 8 bytes
    """
    _index(index_bytes)
    values = storage(whole("nonzero", nonzero), format)
    return values + (nonzero + whole("rows", rows) + 1) * index_bytes


def csr_break_even(
    rows: int, *, columns: int, format: str | Format = "fp32", index_bytes: int = 8
) -> int:
    """The fewest zeros with which compressed rows take less room than the full matrix.

    Formula     the smallest R·C − n with n · (b + i) + (R + 1) · i < R · C · b
    Unit        zeros, a whole number; all of them (R·C) + 1 where nothing is ever gained
    Raises      as `csr`
    """
    _index(index_bytes)
    full = storage(whole("rows", rows) * whole("columns", columns), format)
    count = rows * columns
    low, high = 0, count + 1  # with `low` zeros nothing is gained, with `high` there is
    while high - low > 1:
        zeros = (low + high) // 2
        if csr(rows, nonzero=count - zeros, format=format, index_bytes=index_bytes) < full:
            high = zeros
        else:
            low = zeros
    return high


def two_four(rows: int, *, columns: int, format: str | Format = "bf16") -> int:
    """Bytes of the 2:4 pattern: of every four values two, and which two these are.

    Formula     R · C / 2 · b + R · C / 8 for formats of 1 and 2 bytes (2 bits for each kept value);
                fp32 goes by pairs of halves: R · C / 2 · b + R · C / 4
    Shapes      values [R, C/2]; metadata of 2 bits for each kept value
    Unit        bytes, a whole number
    Source      torch.sparse._semi_structured_conversions, CUTLASS's layout
    Raises      as `coo`; ValueError for columns that are not a multiple of 4
    """
    if whole("columns", columns) % 4:
        raise ValueError(f"columns={columns} is not a multiple of 4")
    count = whole("rows", rows) * columns
    meta = count // 4 if storage(1, format) == 4 else count // 8
    return storage(count // 2, format) + meta


def masked(count: int, *, format: str | Format = "fp32", training: bool = True) -> int:
    """Bytes of a weight under torch.nn.utils.prune: itself, its mask, and their product.

    Formula     3 · P · b: weight_orig, weight_mask and weight, all in the weight's format
    Unit        bytes, a whole number
    Source      torch.nn.utils.prune, which multiplies anew before each forward pass; after
                `prune.remove` one of the three is left
    Leaves out  gradients and states, as many as before, for weight_orig
    Raises      as `coo`
    """
    return (3 if training else 1) * storage(whole("count", count), format)


def _index(index_bytes: int) -> None:
    if index_bytes not in INDEX_BYTES:
        raise ValueError(f"index_bytes={index_bytes!r}; an index has 4 or 8")
