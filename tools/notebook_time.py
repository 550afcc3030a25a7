"""What a chapter costs: seconds of processor time, of its kernel and of every process it starts.

Not seconds of a clock, which say how busy the machine was. A busy one still takes more processor
time, as caches are shared: repeat a doubtful figure. Threads that wait spin unless told to sleep.
"""

import os
import resource

import psutil

SLEEP = {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}


class Stopwatch:
    """Hooks for nbclient that add up what each cell took, start and end of the kernel apart."""

    def __init__(self):
        for name, value in SLEEP.items():
            os.environ.setdefault(name, value)
        self.cells = []
        self.begun = self.last = 0.0
        self.kernel = None

    def started(self, client):
        """Note the kernel's process; what it took so far is its imports."""
        self.kernel = psutil.Process(client.km.provisioner.pid)
        self.begun = _ended()
        self.last = _taken(self.kernel)

    def cell(self, index):
        """Note a cell that has just ended."""
        now = _taken(self.kernel)
        self.cells.append((now - self.last, index))
        self.last = now

    def line(self, name):
        """One row of the table: the whole, and where most of it went. The kernel has ended."""
        dearest = sorted(self.cells, reverse=True)[:3]
        cells = ", ".join(f"[{index}] {seconds:.1f}" for seconds, index in dearest)
        return f"{name:<24} {_ended() - self.begun:6.1f} s   {cells}"


def _taken(process):
    """Of a process that runs, and of its children that ended."""
    times = process.cpu_times()
    return times.user + times.system + times.children_user + times.children_system


def _ended():
    """Of all processes that this one has waited for, and theirs."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
