"""Workspaces: memory that PyTorch gives cuBLAS for matrix products, and never takes back.

The first product on a stream makes a workspace for cuBLAS, with PyTorch's own allocator, so that
`torch.cuda.memory_allocated()` counts it from then on. Each thread has its own handle of the
library, and a workspace belongs to a handle and a stream: a forward pass has one, and the thread in
which autograd runs the backward pass has a second one.
"""

from __future__ import annotations

from ..units import KiB

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# CUBLAS_WORKSPACE_CONFIG=":4096:2:16:8", which is what PyTorch takes by itself: two parts of
# 4,096 KiB and eight of 16 KiB; on Hopper and Blackwell eight parts of 4,096 KiB.
SMALL = (2 * 4096 + 8 * 16) * KiB
LARGE = 8 * 4096 * KiB
# By the major number of the compute capability.
CUBLAS: Mapping[int, int] = {7: SMALL, 8: SMALL, 9: LARGE, 10: LARGE, 12: LARGE}


def cublas_workspaces(capability: int, *, threads: int = 2, streams: int = 1) -> int:
    """Bytes of the workspaces that cuBLAS holds once a program has multiplied matrices.

    Formula     threads · streams · w; w = 8.125 MiB, on Hopper and Blackwell 32 MiB
    Shapes      capability: 7 Volta, Turing; 8 Ampere, Ada; 9 Hopper; 10 and 12 Blackwell. threads:
                2 where there is a backward pass, else 1; streams: those that multiply
    Unit        bytes; they stay until torch._C._cuda_clearCublasWorkspaces()
    Source      torch, aten/src/ATen/cuda/CublasHandlePool.cpp: parseChosenWorkspaceSize, and
                the map from a handle and a stream to a workspace
    Leaves out  CUBLAS_WORKSPACE_CONFIG set by hand; cuBLASLt, whose workspace is a tensor that goes
                after the product or the same one; ROCm; scratch memory of other libraries
    Raises      ValueError for another capability
    """
    if capability not in CUBLAS:
        known = ", ".join([str(number) for number in sorted(CUBLAS)])
        raise ValueError(f"capability={capability!r} is not described; known: {known}")
    return threads * streams * CUBLAS[capability]
