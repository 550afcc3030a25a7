"""Count one run on a device: a tracker on the CPU, the allocator's own counters on CUDA."""

import gc
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import torch

from ..base.gc_paused import no_garbage
from ..lab.train import one_thread
from ..measure import cuda
from ..measure.step_tracker import StepTracker

Counted = dict[str, int | None]
NOTHING: Counted = {"requested": None, "allocated": None, "reserved": None}


class Meter(ABC):
    """Notes figures while a run goes on; `device` is where the run puts its tensors.

    requested   bytes that tensors ask for, beyond what was there before: what is predicted
    allocated   the same in blocks of 512 bytes; None on a CPU, which has no such allocator
    reserved    bytes taken from the driver beyond those before; None on a CPU
    """

    def __init__(self, device: str) -> None:
        self.device = device
        self.found: dict[str, Counted] = {}

    @abstractmethod
    def note(self, moment: str) -> None:
        """Write down what is held now."""

    @abstractmethod
    def reset_peak(self) -> None:
        """Forget the peak so far."""

    @abstractmethod
    def note_peak(self, moment: str = "peak") -> None:
        """Write down the most that was held at once since `reset_peak`."""


class CpuMeter(Meter):
    """Every storage, to the byte."""

    def __init__(self, tracker: StepTracker) -> None:
        super().__init__("cpu")
        self.tracker = tracker

    def note(self, moment: str) -> None:
        self.found[moment] = NOTHING | {"requested": self.tracker.current}

    def reset_peak(self) -> None:
        self.tracker.reset_peak()

    def note_peak(self, moment: str = "peak") -> None:
        self.found[moment] = NOTHING | {"requested": self.tracker.peak}


class CudaMeter(Meter):
    """The counters of the caching allocator, less what they said before the run."""

    def __init__(self) -> None:
        super().__init__("cuda")
        self.before = cuda.counters()

    def note(self, moment: str) -> None:
        self._note(moment, "")

    def reset_peak(self) -> None:
        cuda.reset_peak()

    def note_peak(self, moment: str = "peak") -> None:
        self._note(moment, "_peak")

    def _note(self, moment: str, which: str) -> None:
        now = cuda.counters()
        # A run may give back what was cached before it: less than nothing is nothing.
        self.found[moment] = {
            name: max(getattr(now, name + which) - getattr(self.before, name), 0)
            for name in NOTHING
        }


def measured(run: Callable[[Meter], Any], device: str) -> dict[str, Counted]:
    """What the run noted, moment by moment.

    On CUDA the run goes twice, and the second one counts: what libraries ask for once and keep
    (cuBLAS's workspaces, one for each thread that multiplies) is there before it begins.
    """
    if device == "cpu":
        with ExitStack() as stack:
            stack.enter_context(one_thread())
            stack.enter_context(no_garbage())
            tracker = StepTracker("cpu")  # what is on the meta device is no memory
            stack.enter_context(tracker)
            meter: Meter = CpuMeter(tracker)
            run(meter)
        return meter.found
    run(CudaMeter())
    gc.collect()
    torch.cuda.empty_cache()
    with no_garbage():
        meter = CudaMeter()
        cuda.reset_peak()
        run(meter)
    gc.collect()
    torch.cuda.empty_cache()
    return meter.found
