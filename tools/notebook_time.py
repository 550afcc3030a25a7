"""What a chapter costs: processor time and resident memory, of its kernel and all that it starts.

Not seconds of a clock, which say how busy the machine was. A busy one still takes more processor
time, as caches are shared: repeat a doubtful figure. Threads that wait spin unless told to sleep.
"""

import os
import re
import resource
import threading
from pathlib import Path
from typing import Any

import psutil

SLEEP = {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}


class Stopwatch:
    """Hooks for nbclient that add up what each cell took, start and end of the kernel apart."""

    def __init__(self):
        for name, value in SLEEP.items():
            os.environ.setdefault(name, value)
        self.cells = []
        self.begun = self.last = 0.0
        self.kernel: Any = None  # both begin with the notebook
        self.memory: Any = None

    def started(self, client):
        """Note the kernel's process; what it took so far is its imports."""
        self.kernel = psutil.Process(client.km.provisioner.pid)
        self.memory = Resident(self.kernel)
        self.memory.start()
        self.begun = _ended()
        self.last = _taken(self.kernel)

    def cell(self, index):
        """Note a cell that has just ended."""
        now = _taken(self.kernel)
        self.cells.append((now - self.last, index))
        self.last = now
        self.memory.look()

    def ended(self):
        """(seconds, most bytes resident) of the whole run. The kernel has ended."""
        self.memory.over.set()
        return _ended() - self.begun, self.memory.peak

    def dearest(self):
        """The three cells that took longest, as words."""
        cells = sorted(self.cells, reverse=True)[:3]
        return ", ".join(f"[{index}] {seconds:.1f}" for seconds, index in cells)


class Resident(threading.Thread):
    """The most memory that a process and its children had together, seen four times a second.

    Pages that they share count for each. Of the process itself Linux keeps the highest moment,
    which no look can miss.
    """

    def __init__(self, process):
        super().__init__(daemon=True)
        self.process, self.peak, self.over = process, 0, threading.Event()

    def run(self):
        """Look until somebody says that it is over."""
        while not self.over.wait(0.25):
            self.look()

    def look(self):
        """Note what is resident now, if that is more than before."""
        try:
            each = [self.process, *self.process.children(recursive=True)]
            now = sum(one.memory_info().rss for one in each)
        except psutil.Error:  # one of them has just ended
            now = 0
        self.peak = max(self.peak, now, _highest(self.process.pid))


def _highest(pid):
    """The most that a living process ever had resident, where the system says it."""
    try:
        found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    except OSError:
        return 0
    return 1024 * int(found[1]) if found else 0


def _taken(process):
    """Of a process that runs, and of its children that ended."""
    times = process.cpu_times()
    return times.user + times.system + times.children_user + times.children_system


def _ended():
    """Of all processes that this one has waited for, and theirs."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
