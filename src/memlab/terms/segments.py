"""Segments of device memory and the blocks they are cut into: what the caching allocator moves.

A pool holds the free blocks of one size class; each plain segment is one request to the driver.

Names in brackets are those of PyTorch's c10/cuda/CUDACachingAllocator.cpp.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    Tell = Callable[[str, int, int], object]

# A plain segment starts on a page of the driver's own, 2 MiB (cuMemGetAllocationGranularity).
DRIVER_PAGE = 2097152
# Addresses as CUDA hands them out on Linux: below 2**53, so that a viewer in JavaScript is exact.
FIRST_ADDRESS = 0x7F0000000000


class Block:
    """A stretch of a segment: in use, free, or an address range without memory (not mapped)."""

    def __init__(self, address: int, size: int, mapped: bool = True) -> None:
        self.address, self.size, self.mapped = address, size, mapped
        # neighbours in the same segment [prev, next]
        self.before: Block | None = None
        self.after: Block | None = None
        self.ident: Hashable = None  # whose it is; None when free
        self.requested = 0  # bytes asked for, at most `size`
        self.pool: Pool | None = None  # that it goes back to, while it is in use

    def link(self, before: Block | None, after: Block | None) -> None:
        """Stand between two neighbours, either of which may be None [splice]."""
        self.before, self.after = before, after
        if before is not None:
            before.after = self
        if after is not None:
            after.before = self


class Ordered:
    """Blocks in the order of a key, ascending: a std::set with a comparator."""

    def __init__(self, key: Callable[[Block], tuple[int, ...]]) -> None:
        self._key = key
        self._keys: list[tuple[int, ...]] = []
        self._blocks: dict[int, Block] = {}

    def __len__(self) -> int:
        return len(self._keys)

    def __getitem__(self, place: int) -> Block:
        return self._blocks[self._keys[place][-1]]

    def place(self, key: tuple[int, ...]) -> int:
        """The first place whose key is not below `key` [lower_bound]."""
        low, high = 0, len(self._keys)
        while low < high:
            middle = (low + high) // 2
            if self._keys[middle] < key:
                low = middle + 1
            else:
                high = middle
        return low

    def add(self, block: Block) -> None:
        key = self._key(block)
        self._keys.insert(self.place(key), key)
        self._blocks[block.address] = block

    def remove(self, block: Block) -> None:
        self._keys.pop(self.place(self._key(block)))
        del self._blocks[block.address]


class Driver:
    """The memory behind the segments: how much there is, how much is taken, the next address."""

    def __init__(self, capacity: int | None, tell: Tell) -> None:
        self.capacity, self.tell = capacity, tell
        self.reserved = self.peak_reserved = 0
        self._next = FIRST_ADDRESS

    def take(self, size: int) -> bool:
        """Whether `size` more bytes can be had; if so they are taken."""
        if self.capacity is not None and self.reserved + size > self.capacity:
            return False
        self.reserved += size
        self.peak_reserved = max(self.peak_reserved, self.reserved)
        return True

    def give(self, size: int) -> None:
        self.reserved -= size

    def addresses(self, size: int, page: int) -> int:
        """A range of addresses never used before, starting on a whole page."""
        start = -(-self._next // page) * page
        self._next = start + size
        return start


class Pool:
    """The free blocks of one size class, over plain segments [BlockPool]."""

    def __init__(self, driver: Driver, small: bool, least: int) -> None:
        self.driver, self.small = driver, small
        self.least = least  # the smallest rest worth cutting off [should_split]
        self.free = Ordered(lambda block: (block.size, block.address))  # [BlockComparatorSize]

    def best_fit(self, size: int) -> Block | None:
        """Take the smallest free block of at least `size` bytes, of equals the lowest address.

        A block that can still grow counts with all it can grow to [get_free_block].
        """
        place = self.free.place((size, 0))
        if place == len(self.free):
            return None
        block = self.free[place]
        # Sizes ascend, so the next has less room only where this one has more than its size.
        while _room(block) > block.size and place + 1 < len(self.free):
            after = self.free[place + 1]
            if _room(after) >= _room(block):
                break
            place, block = place + 1, after
        self.free.remove(block)
        return block

    def grow(self, size: int, segment: int) -> Block | None:
        """A new segment of `segment` bytes as one block, or None if the driver has no more."""
        if not self.driver.take(segment):
            return None
        block = Block(self.driver.addresses(segment, DRIVER_PAGE), segment)
        self.driver.tell("segment_alloc", block.address, segment)
        return block

    def cut(self, block: Block, size: int) -> None:
        """Keep the first `size` bytes if the rest is worth keeping free [alloc_found_block]."""
        if block.size - size >= self.least:
            rest = Block(block.address + size, block.size - size)
            block.size = size
            rest.link(block, block.after)
            block.after = rest
            self.free.add(rest)

    def put_back(self, block: Block) -> None:
        """Free a block: one with its free neighbours [free_block]."""
        block.ident, block.requested = None, 0
        self.join(block)
        self.free.add(block)

    def join(self, block: Block) -> None:
        """Swallow the neighbours that are free too [try_merge_blocks]."""
        for other in (block.before, block.after):
            if other is None or other.ident is not None or other.mapped != block.mapped:
                continue
            self.home(other).remove(other)
            if other is block.before:
                block.address = other.address
                block.link(other.before, block.after)
            else:
                block.link(block.before, other.after)
            block.size += other.size

    def home(self, block: Block) -> Ordered:
        """The set in which a free block is kept."""
        return self.free

    def release(self) -> None:
        """Give back every segment that is one free block [release_blocks, release_block]."""
        for block in [self.free[place] for place in range(len(self.free))]:
            if block.before is None and block.after is None:
                self.free.remove(block)
                self.driver.give(block.size)
                self.driver.tell("segment_free", block.address, block.size)


def _room(block: Block) -> int:
    """Bytes of a free block and of the gap behind it, into which it can grow."""
    gap = block.after
    return block.size + (gap.size if gap is not None and not gap.mapped else 0)
