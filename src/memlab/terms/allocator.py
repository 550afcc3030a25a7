"""PyTorch's CUDA caching allocator: from the bytes that tensors ask for to the bytes it reserves.

    requested   bytes that tensors asked for
    allocated   bytes of the blocks they got
    reserved    bytes that the allocator took from the driver: what other programs miss

Sources     torch/include/c10/core/AllocatorConfig.h (PyTorch 2.13) for the sizes,
            c10/cuda/CUDACachingAllocator.cpp for the rules; functions in [brackets]
Leaves out  record_stream, after which a block waits for what another stream does; the options
            max_split_size_mb, roundup_power2_divisions, garbage_collection_threshold,
            per_process_memory_fraction and throw_on_cudamalloc_oom, all off by default, and any
            large_segment_size_mb but the default; private pools (CUDA graphs, MemPool);
            cudaMallocAsync; and everything outside the allocator: the CUDA context, NCCL,
            libraries. New segments get ever higher addresses; the real driver may reuse those of
            segments it got back, which can decide between two equal blocks.
"""

from __future__ import annotations

from ..units import text, whole
from .expandable import ExpandablePool
from .segments import Driver, Pool

# c10/core/AllocatorConfig.h
MIN_BLOCK = 512  # kMinBlockSize: "all sizes are rounded to at least 512 bytes"
SMALL_SIZE = 1048576  # kSmallSize: "largest "small" allocation is 1 MiB"
SMALL_SEGMENT = 2097152  # kSmallBuffer: ""small" allocations are packed in 2 MiB blocks"
LARGE_SEGMENT = 20971520  # large_segment_size_: "20 MB by default"
MIN_LARGE = 10485760  # kMinLargeAlloc: "allocations between 1 and 10 MiB may use kLargeBuffer"
ROUND_LARGE = 2097152  # kRoundLarge: "round up large allocations to 2 MiB"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable

    from .segments import Block, Tell

# Whose a block is while its storage moves to another size.
_MOVING = object()


class OutOfMemory(MemoryError):
    """The device cannot give what the allocator needs, with the numbers of PyTorch's own message.

    requested   bytes that the tensor asked for
    tried       bytes that the allocator asked the driver for ("Tried to allocate")
    capacity, free, allocated, reserved     bytes on the device and in the allocator
    event       the place in the trace that was replayed, else None
    """

    def __init__(
        self, requested: int, *, tried: int, capacity: int, allocated: int, reserved: int
    ) -> None:
        super().__init__(
            f"out of memory. Tried to allocate {text(tried)}. The device has a total capacity of "
            f"{text(capacity)} of which {text(capacity - reserved)} is free. {text(allocated)} is "
            f"allocated and {text(reserved - allocated)} is reserved but unallocated."
        )
        self.requested, self.tried, self.capacity = requested, tried, capacity
        self.allocated, self.reserved, self.free = allocated, reserved, capacity - reserved
        self.event: int | None = None


def rounded(size: int) -> int:
    """Bytes of the smallest block that can hold `size` bytes.

    Formula     512 · ⌈size / 512⌉; a tensor without bytes gets no block
    Unit        bytes, a whole number
    Source      [round_size], [NativeCachingAllocator::allocate]
    Leaves out  roundup_power2_divisions
    Raises      TypeError or ValueError for anything but a count
    """
    return -(-whole("size", size) // MIN_BLOCK) * MIN_BLOCK


def segment_for(size: int) -> int:
    """Bytes that the allocator asks the driver for when no free block can hold `size` bytes.

    Formula     2 MiB up to 1 MiB; 20 MiB below 10 MiB; above, 2 MiB · ⌈size / 2 MiB⌉
    Unit        bytes, a whole number; the size is rounded to 512 first
    Source      [get_allocation_size]
    Leaves out  expandable segments, which grow by pages of 2 MiB (small) or 20 MiB (large)
    Raises      TypeError or ValueError for anything but a count
    """
    size = rounded(size)
    if size == 0:
        return 0
    if size <= SMALL_SIZE:
        return SMALL_SEGMENT
    if size < MIN_LARGE:
        return LARGE_SEGMENT
    return -(-size // ROUND_LARGE) * ROUND_LARGE


class CachingAllocator:
    """One device's allocator; requested, allocated, reserved and their peaks are read as fields.

    capacity    bytes the device has for it; None for no limit
    expandable  as PYTORCH_ALLOC_CONF=expandable_segments:True
    tell        called with (action, address, bytes) for everything it does, as PyTorch's memory
                history names it: alloc, free, segment_alloc, segment_free, segment_map,
                segment_unmap, oom
    retries     times it gave cached segments back and asked again [num_alloc_retries]
    ooms        times that did not help [num_ooms]
    """

    def __init__(
        self, capacity: int | None = None, *, expandable: bool = False, tell: Tell | None = None
    ) -> None:
        if capacity is not None:
            whole("capacity", capacity)
        self._tell = tell or _silent
        self._driver = Driver(capacity, self._tell)
        self._blocks: dict[Hashable, Block | None] = {}
        self._pools: dict[tuple[str, bool], Pool] = {}  # by stream, of small blocks and of large
        self.expandable = bool(expandable)
        self.requested = self.allocated = self.peak_requested = self.peak_allocated = 0
        self.retries = self.ooms = 0

    @property
    def capacity(self) -> int | None:
        return self._driver.capacity

    @property
    def reserved(self) -> int:
        return self._driver.reserved

    @property
    def peak_reserved(self) -> int:
        return self._driver.peak_reserved

    def malloc(self, ident: Hashable, size: int, stream: str = "") -> int | None:
        """Give `ident` a block of at least `size` bytes; returns its address, None for 0 bytes.

        stream      whose it is: no other stream gets a block that this one has let go of
        Source      [malloc], [get_free_block]: "if (... (*it)->stream != p.stream()) return false"
        Raises      OutOfMemory; ValueError if `ident` holds a block already or is None
        """
        if ident is None or ident in self._blocks:
            why = "names nobody" if ident is None else "holds memory already; free it first"
            raise ValueError(f"{ident!r} {why}")
        need = rounded(size)
        if need == 0:
            self._blocks[ident] = None
            return None
        pool = self._pool(stream, need <= SMALL_SIZE)
        block = pool.best_fit(need) or pool.grow(need, segment_for(need))
        if block is None:
            self.retries += 1
            self.empty_cache()
            block = pool.grow(need, segment_for(need))
        if block is None:
            self.ooms += 1
            capacity = self.capacity or 0  # there is one: without it, the driver gives everything
            self._tell("oom", capacity - self.reserved, need)
            raise OutOfMemory(
                size,
                tried=segment_for(need),
                capacity=capacity,
                allocated=self.allocated,
                reserved=self.reserved,
            )
        pool.cut(block, need)
        block.ident, block.requested, block.pool = ident, size, pool
        self._blocks[ident] = block
        self.requested += size
        self.allocated += block.size
        self.peak_requested = max(self.peak_requested, self.requested)
        self.peak_allocated = max(self.peak_allocated, self.allocated)
        self._tell("alloc", block.address, size)
        return block.address

    def free(self, ident: Hashable) -> None:
        """Take the block of `ident` back into the cache, joined with its free neighbours.

        Source      [free], [free_block]
        Raises      ValueError if `ident` holds nothing
        """
        if ident not in self._blocks:
            raise ValueError(f"{ident!r} holds no memory")
        block = self._blocks.pop(ident)
        if block is not None:
            self.requested -= block.requested
            self.allocated -= block.size
            self._tell("free", block.address, block.requested)
            block.pool.put_back(block)  # type: ignore[union-attr]

    def resize(self, ident: Hashable, size: int) -> None:
        """Move `ident` to another size: the new block is there before the old one goes.

        Source      aten/src/ATen/native/cuda/Resize.cpp, resize_bytes_cuda
        Raises      OutOfMemory, with the old block still held; ValueError if there is none
        """
        if ident not in self._blocks:
            raise ValueError(f"{ident!r} holds no memory")
        self.malloc(_MOVING, size)
        self.free(ident)
        block = self._blocks[ident] = self._blocks.pop(_MOVING)
        if block is not None:
            block.ident = ident

    def empty_cache(self) -> None:
        """Give back what is free as a whole: segments, or pages of expandable ones.

        Source      [release_cached_blocks]; torch.cuda.empty_cache() does the same
        """
        for _, pool in sorted(self._pools.items()):  # large ones first
            pool.release()

    def segments(self) -> list[tuple[bool, list[Block]]]:
        """What is reserved, as (small, blocks in order); the blocks of one tuple adjoin.

        An expandable segment shows as one for each stretch that has memory [snapshot].
        """
        found = []
        for pool in self._pools.values():
            blocks = [pool.free[place] for place in range(len(pool.free))]
            blocks += [b for b in self._blocks.values() if b and b.pool is pool]
            for block in blocks:
                if block.before is None or not block.before.mapped:
                    run: list[Block] = []
                    one: Block | None = block
                    while one is not None and one.mapped:
                        run.append(one)
                        one = one.after
                    found.append((pool.small, run))
        return sorted(found, key=lambda segment: segment[1][0].address)

    def _pool(self, stream: str, small: bool) -> Pool:
        if (stream, small) not in self._pools:
            # "remaining > kSmallSize", and every size is a multiple of 512
            least = MIN_BLOCK if small or self.expandable else SMALL_SIZE + MIN_BLOCK
            made: Pool
            if self.expandable:
                page = SMALL_SEGMENT if small else LARGE_SEGMENT
                made = ExpandablePool(self._driver, small, least, page)
            else:
                made = Pool(self._driver, small, least)
            self._pools[stream, small] = made
        return self._pools[stream, small]


def _silent(action: str, address: int, size: int) -> None:
    pass
