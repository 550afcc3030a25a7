"""The life of some memory, as PyTorch counts it and as the operating system does."""

from typing import NamedTuple

import torch

from ..base.message import Message
from ..measure.rss import process_memory, reset_peak, trim
from ..units import whole

PIECE = 2**16  # bytes: small enough to come from the heap of malloc, not from pages of its own


class Moment(NamedTuple):
    """Shares of the bytes that are followed, rounded to tenths: a process has other business too.

    tensors         what tensors hold
    anonymous       what the process holds beyond what it held at the beginning
    high_water      the most that it held at once since then
    """

    what: str
    tensors: float
    anonymous: float
    high_water: float


def life(size: int) -> list[Moment]:
    """Ask for `size` bytes, write them, let them go; then the same in pieces of 64 KiB.

    The heap      pieces are cut from one long stretch of memory, of which only the free end goes
                  back by itself: one piece in use near the end keeps all before it
    Unit          bytes; 256 MiB stand out well from what else a process does
    Leaves out    systems that do not say what a process holds: there the list is empty
    Raises        ValueError for a size that is not a number of whole pieces
    """
    if whole("size", size) % PIECE or not size:
        raise ValueError(f"size={size} is not a multiple of {PIECE} bytes, the size of a piece")
    trim()
    try:
        reset_peak()
        start = process_memory()
    except RuntimeError:
        return []
    found: list[Moment] = []

    def note(what: str, held: int) -> None:
        now = process_memory()
        parts = held, now.anonymous - start.anonymous, now.peak - start.resident
        found.append(Moment(what, *(abs(round(part / size, 1)) for part in parts)))

    one = torch.empty(size, dtype=torch.uint8)
    note("one tensor, asked for", size)
    one.fill_(1)
    note("written", size)
    del one
    note("let go", 0)
    # As fp32 they have few enough values that torch does not wake other threads for each.
    pieces = [torch.ones(PIECE // 4) for _ in range(size // PIECE)]
    note(Message("written in {1} pieces", f"{len(pieces):,}"), size)
    pieces = pieces[-1:]
    note("all but the last let go", PIECE)
    trim()
    note("trimmed", PIECE)
    return found
