"""The memory events of torch.profiler: every call to PyTorch's allocator while it runs.

It counts calls, not tensors, and so sees what no dispatch mode does: scratch memory inside one
kernel. And it knows nothing that was there before it began.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import accumulate
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

KINDS = {"cpu": torch.autograd.DeviceType.CPU, "cuda": torch.autograd.DeviceType.CUDA}


class Profiled:
    """What the profiler saw of one kind of device, read after its block.

    changes     bytes of each event in order, negative for a free
    Unit        bytes as PyTorch asked its allocator for them; on CUDA as the allocator gave them
    Leaves out  whatever was there before the block, and that it goes
    """

    def __init__(self) -> None:
        self.changes: list[int] = []

    @property
    def current(self) -> int:
        """Bytes more than at the beginning."""
        return sum(self.changes)

    @property
    def peak(self) -> int:
        """Most bytes more than at the beginning."""
        return max(accumulate(self.changes), default=0)

    @property
    def asked(self) -> int:
        """Bytes of all allocations together, freed or not."""
        return sum(change for change in self.changes if change > 0)


@contextmanager
def profiled(device: str = "cpu") -> Iterator[Profiled]:
    """Run torch.profiler over a `with` block; its memory events are there afterwards.

    Example     with profiled() as seen: step(); then seen.peak
    Source      torch.profiler.profile(profile_memory=True); events named "[memory]"
    Raises      ValueError for a device that it does not count
    """
    if device not in KINDS:
        raise ValueError(f"device={device!r} has no memory events; known: {', '.join(KINDS)}")
    activities = [ProfilerActivity.CPU]
    if device == "cuda":
        activities.append(ProfilerActivity.CUDA)
    seen, watching = Profiled(), profile(activities=activities, profile_memory=True)
    with _silence():
        watching.start()
    try:
        yield seen
    finally:
        with _silence():
            watching.stop()
    recorded: Any = watching.profiler
    events = [event for event in recorded.kineto_results.events() if event.name() == "[memory]"]
    events = [event for event in events if event.device_type() == KINDS[device]]
    seen.changes = [event.nbytes() for event in sorted(events, key=lambda e: e.start_ns())]


@contextmanager
def _silence() -> Iterator[None]:
    """Starting and stopping, the profiler writes the time of day past Python to stderr."""
    kept = os.dup(2)
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)
