"""Let grouped matrix products run on tensors without values, in every format that a real run takes.

The experts of a mixture are multiplied in one call, rows sorted by expert, so what it allocates
depends on how many rows there are and not on which expert each of them goes to.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

ALIGNED = 16  # bytes: a row of a factor, and of the result, begins at a multiple of it


@contextmanager
def grouped_products() -> Iterator[None]:
    """While the block runs, torch's grouped product is without values what it is with them.

    Formats     all that have kernels; torch's own for tensors without values takes bf16 alone
    Rows        begin at multiples of 16 bytes: those of the result are padded for it, and a factor
                whose rows do not is refused, as torch itself does
    Source      PyTorch 2.13: torch/_meta_registrations.py, _create_grouped_mm_output_tensor;
                aten/src/ATen/native/GroupedMMUtils.h, create_grouped_gemm_output_tensor
    Leaves out  the loop over experts on cards before Hopper, whose products are written in place
    """
    meta: Any = torch._meta_registrations
    before = getattr(meta, "_meta_grouped_mm_common", None)
    if before is None:  # a torch that knows no grouped products
        yield
        return

    def common(mat_a: Tensor, mat_b: Tensor, scale_a: Any, scale_b: Any, **rest: Any) -> Tensor:
        plain = scale_a is None and scale_b is None and rest.get("bias") is None
        if not plain or mat_a.dtype != mat_b.dtype:
            return before(mat_a, mat_b, scale_a, scale_b, **rest)
        return _result(mat_a, mat_b, rest.get("offs"), rest.get("out_dtype"))

    meta._meta_grouped_mm_common = common
    try:
        yield
    finally:
        meta._meta_grouped_mm_common = before


def _result(a: Tensor, b: Tensor, ends: Tensor | None, dtype: torch.dtype | None) -> Tensor:
    """An empty result.

    Shapes      [S, i] @ [E, i, o] -> [S, o] · [i, S] @ [S, o] -> [E, i, o] · [E, i, S] @ [S, o]
                -> [i, o] · [E, S, i] @ [E, i, o] -> [E, S, o]; ends [E]: where each group of rows
                ends
    """
    flat = (a.dim() == 2, b.dim() == 2)
    if flat != (True, True) and a.size(-1) != b.size(-2):
        raise RuntimeError(f"contraction dimensions differ: {tuple(a.shape)} @ {tuple(b.shape)}")
    if flat == (True, True):
        assert ends is not None
        size = [ends.size(0), a.size(0), b.size(1)]
    elif flat == (True, False):
        size = [a.size(0), b.size(2)]
    elif flat == (False, True):
        size = [a.size(1), b.size(1)]
    else:
        size = [a.size(0), a.size(1), b.size(2)]
    for factor in (a, b):
        _check_rows(factor)
    kind = dtype or a.dtype
    values = ALIGNED // kind.itemsize
    row = -(-size[-1] // values) * values
    stride = [size[1] * row, row, 1] if len(size) == 3 else [row, 1]
    return torch.empty_strided(size, stride, dtype=kind, device=a.device)


def _check_rows(factor: Tensor) -> None:
    """Refuse a factor whose rows, or columns where it is transposed, are not aligned.

    Source      aten/src/ATen/native/GroupedMMUtils.h, check_valid_strides_and_return_transposed
    """
    rows, (down, along) = factor.size(-2), factor.stride()[-2:]
    apart = along if down == 1 and along >= max(1, rows) else down
    if apart * factor.itemsize % ALIGNED:
        raise RuntimeError(f"strides should be multiple of {ALIGNED} bytes")
