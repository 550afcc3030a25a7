"""What the operating system counts of this process: pages of memory, not tensors.

    anonymous     pages that belong to the process alone: tensors on the CPU, Python's objects
    file_backed   pages of files that are mapped: libraries, weights read with mmap; the system
                  takes them back when it needs room
    resident      the sum of both: RSS, the resident set size
    peak          the most that was ever resident: the high-water mark, VmHWM

A page is counted when it is first touched, not when it is asked for, and stays counted until it is
given back, which `free` need not do at once.

Source      Linux, Documentation/filesystems/proc.rst, for smaps_rollup and clear_refs (5);
            man 3 malloc_trim
Leaves out  systems without /proc, which is all but Linux; pages moved to swap
"""

import ctypes
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path("/proc/self")


@dataclass(frozen=True)
class ProcessMemory:
    """Bytes of this process at one moment, as the system rounds them: whole pages."""

    resident: int
    peak: int
    anonymous: int
    file_backed: int


def process_memory() -> ProcessMemory:
    """Read what this process holds now.

    Unit        bytes, in multiples of a page (4 KiB on most machines)
    Source      smaps_rollup, which walks the pages; the counters of status may lag behind it
    Raises      RuntimeError where there is no such file
    """
    rollup, status = sizes("smaps_rollup"), sizes("status")
    resident, anonymous = rollup["Rss"], rollup["Anonymous"]
    peak = max(status["VmHWM"], resident)
    return ProcessMemory(resident, peak, anonymous, resident - anonymous)


def reset_peak() -> None:
    """Forget the high-water mark: it is what is resident now.

    What torch.cuda.reset_peak_memory_stats is to a GPU.

    Raises      RuntimeError where there is no /proc, or where it may not be written
    """
    try:
        (FOLDER / "clear_refs").write_text("5")
    except OSError as error:
        raise RuntimeError(f"this system does not let a process reset its peak: {error}") from error


def trim() -> bool:
    """Ask the C library to give free pages back to the system; whether it could.

    What torch.cuda.empty_cache is to a GPU, for the heap of the process.

    Leaves out  C libraries other than GNU's: there nothing happens
    """
    library = ctypes.CDLL(None)
    return bool(library.malloc_trim(0)) if hasattr(library, "malloc_trim") else False


def sizes(name: str) -> dict[str, int]:
    """The sizes that a file of /proc/self states in kB, which are 1,024 bytes each.

    Shapes      "smaps_rollup" -> {"Rss": bytes, "Anonymous": bytes, ...}
    Raises      RuntimeError where there is no such file
    """
    try:
        lines = (FOLDER / name).read_text().splitlines()
    except OSError as error:
        raise RuntimeError(f"this system does not say what a process holds: {error}") from error
    pairs = (line.split(":", 1) for line in lines if line.endswith(" kB"))
    return {key: 1024 * int(value.split()[0]) for key, value in pairs}
