"""A pool of blocks, a table for each sequence, and prefixes that are shared: small enough to read.

As vLLM's BlockPool does it: one tensor from the start, block 0 set aside, and only full blocks
shared, each known by all the tokens up to its end.

Letters     L layers, K key/value heads, H head width, T tokens of one sequence
"""

import torch
from torch import Tensor

from ..model import Model
from ..terms.kv_cache import pages
from ..units import at_least_one


class BlockPool:
    """Room for `count` blocks of `block` tokens, allocated at once and handed out by number.

    Shapes      data [count, 2 L, K, block, H]; tables: one list of block numbers a sequence
    Raises      ValueError for a pool or a block of nothing
    """

    def __init__(
        self, model: Model, count: int, *, block: int = 16, dtype: torch.dtype = torch.float32
    ) -> None:
        shape = (at_least_one("count", count), 2 * model.layers, model.kv_heads)
        self.block = at_least_one("block", block)
        self.data = torch.zeros(*shape, block, model.head_dim, dtype=dtype)
        self.free = list(range(1, count))  # block 0 stands for "none": windows put it in tables
        self.tables: list[list[int]] = []
        self.known: dict[tuple[int, ...], int] = {}

    def admit(self, ids: list[int], kept: Tensor) -> bool:
        """Give one sequence its blocks and store its keys and values; False where none are left.

        Shapes      ids: its T tokens; kept [2 L, K, T, H]
        """
        starts = range(0, len(ids), self.block)
        prefixes = [tuple(ids[: start + self.block]) for start in starts]
        shared = [self.known.get(prefix) for prefix in prefixes]
        if pages(len(ids), block=self.block) - sum(n is not None for n in shared) > len(self.free):
            return False
        table = []
        for start, prefix, number in zip(starts, prefixes, shared, strict=True):
            if number is None:
                number = self.free.pop(0)
                piece = kept[:, :, start : start + self.block]
                self.data[number, :, :, : piece.shape[2]] = piece.to(self.data.dtype)
                if len(prefix) == start + self.block:  # full: nothing will be written to it again
                    self.known[prefix] = number
            table.append(number)
        self.tables.append(table)
        return True

    def read(self, sequence: int, tokens: int) -> Tensor:
        """Keys and values of one sequence, in order, through its table: [2 L, K, T, H]."""
        blocks = self.data[self.tables[sequence]]
        return torch.cat(list(blocks), dim=2)[:, :, :tokens]
