"""Let grouped matrix products run on tensors without values, in every format that a real run takes.

The experts of a mixture are multiplied in one call, rows sorted by expert, so what it allocates
depends on how many rows there are and not on which expert each of them goes to.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

ALIGNED = 16  # bytes: a row of the result on CUDA begins at a multiple of it


@contextmanager
def grouped_products(backend: str) -> Iterator[None]:
    """While the block runs, give torch's grouped product the shapes of the backend.

    A CPU       takes every format; torch's kernel for tensors without values takes bf16 alone
    CUDA        pads the rows of the result; a CPU build of torch does not
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
        return _result(mat_a, mat_b, rest.get("offs"), rest.get("out_dtype"), backend)

    meta._meta_grouped_mm_common = common
    try:
        yield
    finally:
        meta._meta_grouped_mm_common = before


def _result(
    a: Tensor, b: Tensor, ends: Tensor | None, dtype: torch.dtype | None, backend: str
) -> Tensor:
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
    kind = dtype or a.dtype
    row = size[-1]
    if backend == "cuda":
        values = ALIGNED // kind.itemsize
        row = -(-row // values) * values
    stride = [size[1] * row, row, 1] if len(size) == 3 else [row, 1]
    return torch.empty_strided(size, stride, dtype=kind, device=a.device)
