"""The allocator's rules a second time: no linked blocks, all looked up anew at each request.

Written from PyTorch's source as `memlab.terms.allocator` is, but over plain lists: the ranges of
addresses, the pages that have memory, and who uses what. Slow, and short enough to read against
c10/cuda/CUDACachingAllocator.cpp.
"""

KiB, MiB = 2**10, 2**20
USED, FREE, GAP = "used", "free", "gap"


class SlowPool:
    """One size class: `page` is None for plain segments, else the page of expandable ones."""

    def __init__(self, owner, small, page):
        self.owner, self.small, self.page = owner, small, page
        self.ranges = []  # [start, end): a plain segment, or the addresses of an expandable one
        self.pages = set()  # starts of the pages that have memory
        self.used = {}  # ident -> (start, size)

    def pieces(self, start, end):
        """A range from left to right as (start, size, kind); equal neighbours are one piece."""
        used = sorted((s, s + n) for s, n in self.used.values() if start <= s < end)
        cuts = {start, end} | {edge for pair in used for edge in pair}
        if self.page:
            cuts |= {e for p in self.pages if start <= p < end for e in (p, p + self.page)}
        cuts = sorted(cuts)
        found = []
        for left, right in zip(cuts, cuts[1:], strict=False):
            kind = FREE if self.page is None or left // self.page * self.page in self.pages else GAP
            if any(s <= left < e for s, e in used):
                kind = USED
            if found and kind == found[-1][2] != USED:
                found[-1] = (found[-1][0], right - found[-1][0], kind)
            else:
                found.append((left, right - left, kind))
        return found

    def best_fit(self, need):
        fitting = []
        for pair in self.ranges:
            pieces = self.pieces(*pair)
            for here, after in zip(pieces, [*pieces[1:], (0, 0, USED)], strict=True):
                if here[2] == FREE and here[1] >= need:
                    grown = here[1] + (after[1] if after[2] == GAP else 0)
                    fitting.append((here[1], here[0], grown))
        fitting.sort()
        while len(fitting) > 1 and fitting[1][2] < fitting[0][2]:
            fitting.pop(0)
        return (fitting[0][1], fitting[0][0]) if fitting else None

    def grow(self, need):
        if self.page is None:
            size = 2 * MiB if self.small else 20 * MiB
            if need >= 10 * MiB:
                size = -(-need // (2 * MiB)) * 2 * MiB
            if not self.owner.can_take(size):
                return None
            start = self.owner.new_range(size)
            self.ranges.append((start, start + size))
            return start, size
        for pair in self.ranges:
            pieces = self.pieces(*pair)
            for i, piece in enumerate(pieces):
                if piece[2] != GAP:
                    continue
                first = i - 1 if i and pieces[i - 1][2] == FREE else i
                run, last = 0, first
                while last < len(pieces) and pieces[last][2] != USED and run < need:
                    run += pieces[last][1]
                    last += 1
                if run >= need:
                    return self.map(pieces[first:last], need)
        limit = self.owner.capacity
        space = 2**46 if limit is None else limit + limit // 8
        space = -(-max(space, need) // self.page) * self.page
        start = self.owner.new_range(space)
        self.ranges.append((start, start + space))
        return self.map([(start, space, GAP)], need)

    def map(self, run, need):
        """Put pages behind the gaps of a run, gap by gap, until `need` bytes have memory."""
        start, have = run[0][0], 0
        for left, size, kind in run:
            if kind == GAP:
                pages = -(-min(need - have, size) // self.page)
                if not self.owner.can_take(pages * self.page):
                    return None
                self.pages |= {left + k * self.page for k in range(pages)}
                size = pages * self.page
            have += size
        return start, have

    def release(self):
        for start, end in list(self.ranges):
            for left, size, kind in self.pieces(start, end):
                if self.page is None:
                    if kind == FREE and size == end - start:
                        self.ranges.remove((start, end))
                elif kind == FREE:
                    inside = range(-(-left // self.page), (left + size) // self.page)
                    self.pages -= {k * self.page for k in inside}

    def reserved(self):
        if self.page:
            return len(self.pages) * self.page
        return sum(end - start for start, end in self.ranges)


class SlowAllocator:
    def __init__(self, capacity=None, expandable=False):
        self.capacity, self.top, self.retries = capacity, 0, 0
        self.small = SlowPool(self, True, 2 * MiB if expandable else None)
        self.large = SlowPool(self, False, 20 * MiB if expandable else None)

    def can_take(self, size):
        return self.capacity is None or self.reserved + size <= self.capacity

    def new_range(self, size):
        start = -(-self.top // (20 * MiB)) * 20 * MiB
        self.top = start + size
        return start

    @property
    def reserved(self):
        return self.small.reserved() + self.large.reserved()

    @property
    def allocated(self):
        return sum(n for pool in (self.small, self.large) for _, n in pool.used.values())

    def malloc(self, ident, size):
        """Whether there was room."""
        if size == 0:
            return True
        need = (size + 511) // 512 * 512
        pool = self.small if need <= MiB else self.large
        found = pool.best_fit(need) or pool.grow(need)
        if found is None:
            self.retries += 1
            self.empty_cache()
            found = pool.grow(need)
        if found is None:
            return False
        start, size = found
        splits = pool.small or pool.page
        pool.used[ident] = (start, need if splits or size - need > MiB else size)
        return True

    def empty_cache(self):
        self.large.release()
        self.small.release()

    def free(self, ident):
        self.small.used.pop(ident, None)
        self.large.used.pop(ident, None)
