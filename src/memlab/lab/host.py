"""Room beside the device, and the bus that leads there: here a mapped file.

On a machine without a GPU the part of the device is played by the memory that a tracker counts,
and the part of the host by a file. Bytes that stand in a mapped file are nobody's anonymous memory,
so the system's own figures fall as a GPU's would. For a real GPU see memlab.lab.pinned.
"""

import ctypes
import mmap
import os
import tempfile
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from torch import Tensor, UntypedStorage

from ..terms.host import paged


def done() -> None:
    """Nothing to wait for."""


class Host:
    """Keeps storages elsewhere and counts what crosses the bus. This one keeps nothing: it counts.

    sent, brought   bytes that have crossed the bus, to the host and back
    transfers       how often, in both directions together
    held            bytes in places that are in use
    Use             tensors without values (fake ones) have no bytes to copy, so for them this is
                    all there is to do; the others inherit the counting
    Raises          KeyError for a place that was given back
    """

    def __init__(self) -> None:
        self.sent = self.brought = self.transfers = self.held = 0
        self._free: dict[int, list[Any]] = {}

    def send(self, storage: UntypedStorage, place: Any = None) -> Any:
        """Write a storage to a place, a new one unless it is given; returns the place."""
        size = storage.nbytes()
        if place is None:
            waiting = self._free.get(size)
            # A step asks for the same sizes as the one before: what that gave back will fit.
            place = waiting.pop() if waiting else self._make(size)
            self.held += size
        self.sent += size
        self.transfers += 1
        self._write(place, storage)
        return place

    def ask(self, place: Any, size: int, device: torch.device) -> tuple[Tensor, Callable[[], None]]:
        """Memory on the device, [size] bytes, that fills from now on; call the second to wait."""
        memory = torch.empty(size, dtype=torch.uint8, device=device)
        self.brought += size
        self.transfers += 1
        return memory, self._read(place, memory)

    def bring(self, place: Any, size: int, device: torch.device) -> Tensor:
        """The same, and waits."""
        memory, wait = self.ask(place, size, device)
        wait()
        return memory

    def give_back(self, place: Any, size: int) -> None:
        """Let a place of that size be written to again."""
        self.held -= size
        self._free.setdefault(size, []).append(place)

    def _make(self, size: int) -> Any:
        return object()

    def _write(self, place: Any, storage: UntypedStorage) -> None:
        pass

    def _read(self, place: Any, memory: Tensor) -> Callable[[], None]:
        return done


class File(Host):
    """One mapped file without a name, which is gone when nobody maps it any more.

    Pages           each place begins on a page of its own (4 KiB as a rule): that of a small
                    tensor is mostly empty
    Prefetch        `ask` copies in a second thread; ctypes lets go of Python's lock meanwhile
    """

    def __init__(self, folder: str | None = None) -> None:
        super().__init__()
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
        weakref.finalize(self, self._file.close)
        self._end = 0
        self._copying = ThreadPoolExecutor(1)

    @property
    def size(self) -> int:
        """Bytes of the file, whole pages."""
        return self._end

    def settle(self) -> None:
        """Wait until all that was asked for is there."""
        self._copying.submit(done).result()

    def _make(self, size: int) -> tuple[int, mmap.mmap]:
        offset = self._end
        self._end += paged(max(size, 1), page=mmap.ALLOCATIONGRANULARITY)
        os.ftruncate(self._file.fileno(), self._end)
        return offset, mmap.mmap(self._file.fileno(), max(size, 1), offset=offset)

    def _write(self, place: tuple[int, mmap.mmap], storage: UntypedStorage) -> None:
        if storage.device.type != "cpu":  # its address means nothing to this process
            raise ValueError(
                f"a storage on {storage.device}: a file takes those of the CPU, and "
                "memlab.lab.pinned.Pinned those of a GPU"
            )
        # Written, not stored through the mapping: that would ask for the file's pages one by one.
        self._file.seek(place[0])
        self._file.write((ctypes.c_char * storage.nbytes()).from_address(storage.data_ptr()))
        self._file.flush()

    def _read(self, place: tuple[int, mmap.mmap], memory: Tensor) -> Callable[[], None]:
        to, size, mapped = memory.data_ptr(), memory.nbytes, place[1]
        copied = self._copying.submit(lambda: ctypes.memmove(to, _address(mapped), size))

        def wait() -> None:
            copied.result()
            if hasattr(mmap, "MADV_DONTNEED"):  # the file has it: these pages need not stay here
                mapped.madvise(mmap.MADV_DONTNEED)

        return wait


def _address(mapped: mmap.mmap) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(mapped))
