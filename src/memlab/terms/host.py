"""Host memory: what a tensor that was sent to the host takes there, pinned or by the page.

n bytes of the tensor
"""

from __future__ import annotations

from ..units import whole

# The size of a page on x86-64 and on most 64-bit Arm systems (others have 16 or 64 KiB).
PAGE = 4096


def pinned(size: int) -> int:
    """Bytes of the pinned block that PyTorch takes for `size` bytes.

    Formula     2^⌈log2 n⌉: the first power of two that is not below n; 0 for nothing
    Unit        bytes, a whole number: nearly twice n at worst
    Source      torch, aten/src/ATen/core/CachingHostAllocator.h, `allocate`: "Round up the
                allocation to the nearest power of two to improve reuse"
    Leaves out  pinned_max_round_threshold_mb, above which sizes are not rounded (none by default);
                that a block which is given back stays with the process, for the next tensor of the
                same power of two; what cudaHostAlloc itself rounds to pages
    Raises      TypeError or ValueError for anything but a count
    """
    if whole("size", size) == 0:
        return 0
    block = 1
    while block < size:
        block *= 2
    return block


def paged(size: int, *, page: int = PAGE) -> int:
    """Bytes of whole pages: a mapped file, or a large tensor that is not pinned.

    Formula     page · ⌈n / page⌉
    Unit        bytes, a whole number
    Source      mmap(2): a mapping begins and ends with a page; mallopt(3), M_MMAP_THRESHOLD: glibc
                maps what has 128 KiB or more
    Leaves out  pages that nobody has touched yet, which take no memory; smaller tensors, which
                share pages
    Raises      ValueError for a page of 0 bytes, or anything but a count
    """
    if whole("page", page) == 0:
        raise ValueError("page=0; a page has bytes (4,096 on most machines)")
    return -(-whole("size", size) // page) * page
