"""What a program holds now: its processes as the system counts them, its card as the driver does.

Source      Linux, Documentation/filesystems/proc.rst, for PSS, the proportional set size: a page
            that three processes share counts a third for each, so that the sum over a program is
            what it really takes; NVIDIA's NVML reference, as nvidia-smi asks it, for the cards
Leaves out  pages that were moved to swap
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from importlib import import_module

import psutil

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

HAS_PSS = os.path.exists("/proc/self/smaps_rollup")
# linux/proc_ns.h, PROC_PID_INIT_INO: outside of every container. The driver counts by these ids.
FIRST_NAMESPACE = 0xEFFFFFFC


def process_bytes(processes: Iterable[psutil.Process]) -> int:
    """Bytes of all these processes together: PSS where the system has it (Linux), else RSS.

    Unit        bytes, whole pages
    Leaves out  processes that have just ended; where another user's pages may not be read, their
                RSS stands in
    """
    total = 0
    for process in processes:
        try:
            total += process.memory_full_info().pss if HAS_PSS else process.memory_info().rss
        except psutil.AccessDenied:
            try:
                total += process.memory_info().rss
            except psutil.Error:
                continue
        except psutil.Error:  # it has ended
            continue
    return total


class Cards:
    """The cards that a program may use, of which the fullest counts.

    nvml        the module `pynvml` of the package nvidia-ml-py
    name        of the card, or "2 × name"
    total       bytes of the smallest of them
    counts      "program": the driver says what each process holds. "card": everything on the card,
                other programs too, because in a container the driver knows the processes by other
                numbers, or because it does not tell at all
    Leaves out  the order of CUDA_DEVICE_ORDER: a number in CUDA_VISIBLE_DEVICES is taken as
                nvidia-smi counts, which differs where cards of several kinds are in one machine
    Raises      LookupError where there is no driver or no card that the program may use
    """

    def __init__(self, nvml: Any, environment: Mapping[str, str], *, own_numbers: bool) -> None:
        self._nvml = nvml
        try:
            nvml.nvmlInit()
            self._cards = [self._handle(one) for one in self._visible(environment)]
            if not self._cards:
                raise LookupError("no card is visible")
            names = {_text(nvml.nvmlDeviceGetName(card)) for card in self._cards}
            self.total = min(nvml.nvmlDeviceGetMemoryInfo(card).total for card in self._cards)
        except nvml.NVMLError as error:
            raise LookupError(str(error)) from error
        many = f"{len(self._cards)} × " if len(self._cards) > 1 else ""
        self.name = many + ", ".join(sorted(names))
        self.counts = "program" if own_numbers and self._tells() else "card"

    def bytes(self, processes: Iterable[int]) -> int | None:
        """Bytes on the fullest card; None where the driver does not answer.

        processes   the numbers of the program's processes
        """
        mine = set(processes)
        try:
            return max(self._held(card, mine) for card in self._cards)
        except self._nvml.NVMLError:
            return None

    def _held(self, card: Any, mine: set[int]) -> int:
        if self.counts == "program":
            # A process that computes and draws is in both lists, with the same number.
            sizes = {p.pid: p.usedGpuMemory for p in self._programs(card) if p.pid in mine}
            if None not in sizes.values():
                return sum(sizes.values())
        return self._nvml.nvmlDeviceGetMemoryInfo(card).used

    def _programs(self, card: Any) -> list:
        found = list(self._nvml.nvmlDeviceGetComputeRunningProcesses(card))
        try:
            return found + list(self._nvml.nvmlDeviceGetGraphicsRunningProcesses(card))
        except self._nvml.NVMLError:  # cards without a display have no such list
            return found

    def _tells(self) -> bool:
        try:
            return all(p.usedGpuMemory is not None for c in self._cards for p in self._programs(c))
        except self._nvml.NVMLError:
            return False

    def _visible(self, environment: Mapping[str, str]) -> list[str]:
        """Numbers or UUIDs of cards, as CUDA takes them: up to the first that makes no sense."""
        known = [str(i) for i in range(self._nvml.nvmlDeviceGetCount())]
        said = environment.get("CUDA_VISIBLE_DEVICES")
        if said is None:
            return known
        wanted = []
        for one in (word.strip() for word in said.split(",")):
            if one not in known and not one.startswith(("GPU-", "MIG-")):
                break
            wanted.append(one)
        return wanted

    def _handle(self, one: str) -> Any:
        if one.isdecimal():
            return self._nvml.nvmlDeviceGetHandleByIndex(int(one))
        return self._nvml.nvmlDeviceGetHandleByUUID(one.encode())


def find_cards(environment: Mapping[str, str] = os.environ) -> Cards:
    """The cards of this machine that a program started in this environment may use.

    Raises      LookupError where there is none; ModuleNotFoundError where there is a driver, and
                not the package that asks it
    """
    try:
        nvml = import_module("pynvml")
    except ModuleNotFoundError:
        if os.path.exists("/proc/driver/nvidia/version"):
            raise
        raise LookupError("no NVIDIA driver, and nvidia-ml-py is not installed") from None
    return Cards(nvml, environment, own_numbers=_first_namespace())


def _first_namespace() -> bool:
    try:
        return os.stat("/proc/self/ns/pid").st_ino == FIRST_NAMESPACE
    except OSError:
        return False


def _text(name: str | bytes) -> str:
    return name.decode() if isinstance(name, bytes) else name
