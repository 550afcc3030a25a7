"""PyTorch's out-of-memory message, word by word, for a replay that ended in one.

The allocator's replay knows what was asked for and what was allocated and reserved at that moment;
the card knows its capacity. Together they are all the figures of the message.
"""

from __future__ import annotations

from ..devices import Device, card
from ..terms.allocator import OutOfMemory
from ..terms.context import CONTEXT
from ..units import GiB, KiB, MiB

WORDS = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {tried}. "
    "GPU {number} has a total capacity of {capacity} of which {free} is free. "
    "Including non-PyTorch memory, this process has {used} memory in use. "
    "Of the allocated memory {allocated} is allocated by PyTorch, and {unallocated} is reserved by "
    "PyTorch but unallocated. If reserved but unallocated memory is large try setting "
    "PYTORCH_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation for "
    "Memory Management  (https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)"
)


def oom_message(
    error: OutOfMemory, on: str | Device, context: int = CONTEXT, number: int = 0
) -> str:
    """What PyTorch prints when this request fails on this card.

    on          the card, whose usable bytes are the message's "total capacity"
    context     bytes of the process outside the allocator, which the replay left out
    number      of the card on its machine
    Source      the words as PyTorch 2.10 prints them, read in messages that users posted; the
                test rebuilds one of them. Sizes: CUDACachingAllocator.cpp, format_size
    Leaves out  other processes on the card, private pools, a memory fraction
    """
    capacity = card(on).limit
    used = error.reserved + context
    sizes = {
        "tried": error.tried,
        "capacity": capacity,
        "free": capacity - used,
        "used": used,
        "allocated": error.allocated,
        "unallocated": error.reserved - error.allocated,
    }
    return WORDS.format(number=number, **{name: size_of(size) for name, size in sizes.items()})


def size_of(count: int) -> str:
    """Bytes as the message writes them: "512 bytes", "64.00 MiB", "79.11 GiB"."""
    for least, unit, name in ((GiB, GiB, "GiB"), (MiB, MiB, "MiB"), (KiB, KiB, "KiB")):
        if count > least:
            return f"{count / unit:.2f} {name}"
    return f"{count} bytes"
