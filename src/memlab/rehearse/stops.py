"""Where a card has no more: PyTorch's message, and the lines behind the request that failed."""

from typing import NamedTuple

from ..base.message import Message
from ..devices import Device
from ..measure.line_tracker import Line
from ..terms.allocator import OutOfMemory
from ..units import text

# As torch.OutOfMemoryError says it: c10/cuda/CUDACachingAllocator.cpp, PyTorch 2.13.
FAILED = (
    "CUDA out of memory. Tried to allocate {tried}. GPU {number} has a total capacity of {there} "
    "of which {free} is free. Including non-PyTorch memory, this process has {used} memory in use. "
    "Of the allocated memory {allocated} is allocated by PyTorch, and {cached} is reserved by "
    "PyTorch but unallocated."
)


class Failure(NamedTuple):
    """Where a card has no more: PyTorch's message, the step, and the two lines."""

    message: str
    step: int
    phase: str
    reader: Line
    library: Line


def message(error: OutOfMemory, card: Device, number: int) -> str:
    """What PyTorch says of an allocation that failed on the card of this number."""
    there = card.limit
    used = error.reserved + there - error.capacity
    return Message(
        FAILED,
        number=number,
        tried=text(error.tried),
        there=text(there),
        free=text(there - used),
        used=text(used),
        allocated=text(error.allocated),
        cached=text(error.reserved - error.allocated),
    )
