"""The host of a GPU: pinned memory, and copies that run beside the computing.

Written and reviewed, and not yet run on a GPU.
"""

from collections.abc import Callable

import torch
from torch import Tensor, UntypedStorage

from ..terms.host import pinned
from .host import Host


class Pinned(Host):
    """Host memory that the system promises not to move, so a GPU can copy it by itself.

    Overlap         copies go through a stream of their own, while the GPU goes on computing
    Order           the copies wait for what was computed before they were asked for: for the
                    values to send, and for the memory to bring into, which had another owner
    reserved        bytes of the blocks behind all places, in use or not: torch rounds each up to a
                    power of two
    """

    def __init__(self) -> None:
        super().__init__()
        self._stream = torch.cuda.Stream()
        self.reserved = 0

    def _make(self, size: int) -> Tensor:
        self.reserved += pinned(size)
        return torch.empty(size, dtype=torch.uint8, pin_memory=True)

    def _write(self, place: Tensor, storage: UntypedStorage) -> None:
        values = torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            place.copy_(values, non_blocking=True)
        values.record_stream(self._stream)  # its block may be reused once it has been copied

    def _read(self, place: Tensor, memory: Tensor) -> Callable[[], None]:
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            memory.copy_(place, non_blocking=True)
        arrived = self._stream.record_event()
        return lambda: torch.cuda.current_stream().wait_event(arrived)
