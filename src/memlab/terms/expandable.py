"""Expandable segments: a range of addresses into which memory is mapped, page by page.

Names in brackets are those of PyTorch's c10/cuda/CUDACachingAllocator.cpp, whose note "Expandable
Segments" gives the reasons.
"""

from __future__ import annotations

from .segments import Block, Ordered, Pool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .segments import Driver

# Room for one segment where the device has no limit: 64 TiB of addresses.
UNLIMITED_SPACE = 2**46


class ExpandablePool(Pool):
    """The same over expandable segments, which grow and shrink by whole pages."""

    def __init__(self, driver: Driver, small: bool, least: int, page: int) -> None:
        super().__init__(driver, small, least)
        self.page = page
        self.unmapped = Ordered(lambda block: (block.address,))  # [BlockComparatorAddress]

    def home(self, block: Block) -> Ordered:
        return self.free if block.mapped else self.unmapped

    def grow(self, size: int, segment: int) -> Block | None:
        """Map pages at the lowest address with room for `size` [try_allocate_expandable_block].

        Pages mapped before the driver ran out stay mapped, as free blocks.
        """
        block = self._room_for(size)
        if not block.mapped and not self._map(block, min(block.size, size)):
            return None
        while block.size < size:
            gap = block.after
            if gap is None or not self._map(gap, min(size - block.size, gap.size)):
                return None
            block = gap  # it swallowed what stood before it
        self.free.remove(block)
        return block

    def release(self) -> None:
        """Unmap every page that is free as a whole [release_blocks, unmap_block]."""
        for block in [self.free[place] for place in range(len(self.free))]:
            self._unmap(block)
            if not block.mapped and block.before is None and block.after is None:
                self.unmapped.remove(block)  # [release_expandable_segment]

    def _room_for(self, size: int) -> Block:
        """The first of a run of free blocks and gaps with `size` bytes [find_expandable_block]."""
        for place in range(len(self.unmapped)):
            block = self.unmapped[place]
            if block.before is not None and block.before.ident is None:
                block = block.before
            if _run(block, size) >= size:
                return block
        # 1 1/8 of the device, so that pages can move to the end when earlier ones are in use.
        capacity = self.driver.capacity
        space = UNLIMITED_SPACE if capacity is None else capacity + capacity // 8
        space = -(-max(space, size) // self.page) * self.page
        block = Block(self.driver.addresses(space, self.page), space, mapped=False)
        self.unmapped.add(block)
        return block

    def _map(self, block: Block, size: int) -> bool:
        """Put memory behind the first pages of a gap [map_block]."""
        size = -(-size // self.page) * self.page
        if not self.driver.take(size):
            return False
        self.driver.tell("segment_map", block.address, size)
        self.unmapped.remove(block)
        if size < block.size:
            rest = Block(block.address + size, block.size - size, mapped=False)
            block.size = size
            rest.link(block, block.after)
            block.after = rest
            self.unmapped.add(rest)
        block.mapped = True
        self.join(block)
        self.free.add(block)
        return True

    def _unmap(self, block: Block) -> None:
        """Take the memory from behind the whole pages of a free block [unmap_block]."""
        start = -(-block.address // self.page) * self.page
        end = (block.address + block.size) // self.page * self.page
        if start >= end:
            return
        self.free.remove(block)
        if start > block.address:
            rest = Block(block.address, start - block.address)
            rest.link(block.before, block)
            self.free.add(rest)
        if end < block.address + block.size:
            rest = Block(end, block.address + block.size - end)
            rest.link(block, block.after)
            self.free.add(rest)
        block.address, block.size, block.mapped = start, end - start, False
        self.join(block)
        self.unmapped.add(block)
        self.driver.give(end - start)
        self.driver.tell("segment_unmap", start, end - start)


def _run(block: Block | None, enough: int) -> int:
    """Bytes from here on that are free or not mapped; stops counting at `enough`."""
    total = 0
    while total < enough and block is not None and block.ident is None:
        total += block.size
        block = block.after
    return total
