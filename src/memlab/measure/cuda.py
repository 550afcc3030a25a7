"""The CUDA allocator's own counters, under the names that `Tracker` uses.

    requested   bytes that tensors asked for: what the tracker counts
    allocated   the same, rounded up by the allocator to multiples of 512 bytes
    active      allocated, and blocks that were freed but that another stream may still use
    reserved    bytes that the allocator holds from the driver: what other programs miss

Source      torch.cuda.memory_stats, https://docs.pytorch.org/docs/stable/cuda.html
Leaves out  the CUDA context, and libraries that allocate past PyTorch (NCCL, some of cuBLAS)
"""

import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import torch

KEYS = {
    "allocated": "allocated_bytes",
    "requested": "requested_bytes",
    "active": "active_bytes",
    "reserved": "reserved_bytes",
}


@dataclass(frozen=True)
class Counters:
    """The allocator's bytes on one device, now and at their peaks.

    Unit        bytes; each peak is since the last `reset_peak`, and they need not be simultaneous
    """

    allocated: int
    requested: int
    active: int
    reserved: int
    allocated_peak: int
    requested_peak: int
    active_peak: int
    reserved_peak: int

    @property
    def current(self) -> int:
        """Bytes allocated now."""
        return self.allocated

    @property
    def peak(self) -> int:
        """Most bytes allocated at once."""
        return self.allocated_peak

    def as_dict(self) -> dict[str, int]:
        """The counters by name, ready for JSON."""
        return asdict(self)


def available() -> bool:
    """Whether this torch build sees a CUDA device, and nobody hides it.

    Setting     MEMLAB_DEVICE=cpu hides it: chapters then run as they were stored, on any machine
    Raises      ValueError for another word there
    """
    if (asked := os.environ.get("MEMLAB_DEVICE", "")) not in ("", "cpu", "cuda"):
        raise ValueError(f"MEMLAB_DEVICE={asked!r} is unknown; known: cpu, cuda")
    return asked != "cpu" and torch.cuda.is_available()


def where() -> str:
    """ "cuda" if there is such a device, else "cpu": what a chapter puts its tensors on."""
    return "cuda" if available() else "cpu"


def counters(device: Any = None) -> Counters:
    """The allocator's counters on `device` (the current one if None), after its work has ended.

    Raises      RuntimeError without a CUDA device, or for an allocator that does not count
    """
    _need_device()
    torch.cuda.synchronize(device)
    stats = torch.cuda.memory_stats(device)
    values = {}
    for name, key in KEYS.items():
        for field, kind in ((name, "current"), (f"{name}_peak", "peak")):
            try:
                values[field] = stats[f"{key}.all.{kind}"]
            except KeyError:
                raise RuntimeError(
                    f"the CUDA allocator reports no {key}.all.{kind}; use the native one "
                    "(PYTORCH_ALLOC_CONF=backend:native)"
                ) from None
    if values["allocated_peak"] and not values["requested_peak"]:
        # cudaMallocAsync reports zero for whatever it does not count.
        raise RuntimeError(
            "the CUDA allocator counts no requested_bytes; use the native one "
            "(PYTORCH_ALLOC_CONF=backend:native)"
        )
    return Counters(**values)


def reset_peak(device: Any = None) -> None:
    """Forget the peaks so far on `device`: they are what is held now.

    Raises      RuntimeError without a CUDA device
    """
    _need_device()
    torch.cuda.synchronize(device)
    torch.cuda.reset_peak_memory_stats(device)


class CudaTracker:
    """Reads the counters over a `with` block: `Tracker`'s current, peak and reset_peak.

    Unit        bytes allocated, those from before the block included
    Leaves out  categories and the timeline: counters know no names
    Raises      RuntimeError without a CUDA device, and when read before its block began
    """

    def __init__(self, device: Any = None) -> None:
        self.device = device
        self._running = False
        self._last: Counters | None = None

    def __enter__(self) -> "CudaTracker":
        if self._running:
            raise RuntimeError("this CudaTracker is already recording; make a new one")
        reset_peak(self.device)
        self._running = True
        return self

    def __exit__(self, *error: Any) -> None:
        self._running = False
        self._last = counters(self.device)

    @property
    def counters(self) -> Counters:
        """All counters now; after the block, those at its end."""
        if self._running:
            return counters(self.device)
        if self._last is None:
            raise RuntimeError("this CudaTracker has not begun; read it inside its `with` block")
        return self._last

    @property
    def current(self) -> int:
        """Bytes allocated now; after the block, at its end."""
        return self.counters.current

    @property
    def peak(self) -> int:
        """Most bytes allocated at once since the block began or the last `reset_peak`."""
        return self.counters.peak

    def reset_peak(self) -> None:
        """Forget the peak so far: it is what is allocated now."""
        reset_peak(self.device)

    def snapshot(self) -> dict[str, int]:
        """All counters by name, ready for JSON."""
        return self.counters.as_dict()


def counted(run: Callable[[], Any], device: Any = None) -> Counters | None:
    """The counters over one run, and None, without running it, where there is no CUDA device.

    Example     counted(lambda: train("cuda")): a page that is read with and without a GPU
    """
    if not available():
        return None
    with CudaTracker(device) as tracker:
        run()
    return tracker.counters


def _need_device() -> None:
    if not available():
        raise RuntimeError(
            "this torch build sees no CUDA device; memlab.measure.Tracker counts the bytes of "
            "CPU, meta and fake tensors without one"
        )
    torch.cuda.init()  # the statistics are empty until then
