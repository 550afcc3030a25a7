"""What this machine can still give: its free memory, or less where a container allows less.

Source      Linux, Documentation/filesystems/proc.rst (MemAvailable), admin-guide/cgroup-v2.rst
            (memory.max, memory.current, memory.stat, memory.events) and cgroup-v1/memory.rst
"""

from __future__ import annotations

from pathlib import Path

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

# Of a control group: what it may hold, what it holds, and what of that the system takes back.
FILES = {
    2: ("memory.max", "memory.current", "inactive_file"),
    1: ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
}


def free_bytes(root: Path = Path("/")) -> int | None:
    """Bytes that a new program may take before the system must refuse or kill.

    Unit        bytes; None where the system does not say (no /proc, and no psutil either)
    Leaves out  swap, which is no place for a training run, and limits of a shell (ulimit)
    """
    free = _available(root)
    for folder, version in control_groups(root):
        most, held, cache = FILES[version]
        limit, used = number(folder / most), number(folder / held)
        if limit is not None and used is not None:
            back = _fields(folder / "memory.stat").get(cache, 0)
            left = max(0, limit - used + back)
            free = left if free is None else min(free, left)
    return free


def total_bytes(root: Path = Path("/")) -> int | None:
    """Bytes that the machine has, or fewer where a container allows fewer.

    Unit        bytes; None where the system does not say
    """
    found = _fields(root / "proc/meminfo").get("MemTotal:")
    total = None if found is None else found * 1024
    if total is None:
        psutil = _psutil()
        total = int(psutil.virtual_memory().total) if psutil else None
    for folder, version in control_groups(root):
        limit = number(folder / FILES[version][0])
        if limit is not None:
            total = limit if total is None else min(total, limit)
    return total


def oom_kills(root: Path = Path("/")) -> int | None:
    """Processes of this container that the system has killed for memory; None: it counts none.

    Either file has a line "oom_kill 3".
    """
    for folder, version in control_groups(root):
        found = _fields(folder / ("memory.events" if version == 2 else "memory.oom_control"))
        if "oom_kill" in found:
            return found["oom_kill"]
    return None


def control_groups(root: Path = Path("/")) -> Iterator[tuple[Path, int]]:
    """The folder of each control group of memory that holds this process, and its version."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            mount, version = root / "sys/fs/cgroup", 2
        elif "memory" in controllers.split(","):
            mount, version = root / "sys/fs/cgroup/memory", 1
        else:
            continue
        here = mount / path.lstrip("/")
        for folder in (here, *here.parents):
            if not folder.is_relative_to(mount):
                break
            yield folder, version


def number(file: Path) -> int | None:
    """The number in a file; None for "max", for none, and for a file that is not there."""
    try:
        value = int(file.read_text())
    except (OSError, ValueError):
        return None
    return value if value >= 0 else None


def _available(root: Path) -> int | None:
    found = _fields(root / "proc/meminfo").get("MemAvailable:")
    if found is not None:
        return found * 1024
    psutil = _psutil()
    return int(psutil.virtual_memory().available) if psutil else None


def _psutil() -> Any:
    """The package that asks a system without /proc; None where it is not installed."""
    try:
        import psutil
    except ModuleNotFoundError:
        return None
    return psutil


def _fields(file: Path) -> dict[str, int]:
    """The numbers of a file with a name and a number a line."""
    try:
        lines = [line.split() for line in file.read_text().splitlines()]
    except OSError:
        return {}
    return {words[0]: int(words[1]) for words in lines if len(words) > 1 and words[1].isdigit()}
