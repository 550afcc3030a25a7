"""Every process that a program started: found, even when it ran away, and stopped together.

A grandchild that outlives its parent, or that began a session of its own, is nobody's child any
more. Linux can be told to hand such orphans to us instead of to the system's first process; then
all that the program ever started descends from this process.

Source      man 2 PR_SET_CHILD_SUBREAPER, man 2 PR_SET_PDEATHSIG
Leaves out  processes that another one starts at the program's request (a container engine, a
            scheduler); on macOS, an orphan that appears and loses its parent between two looks
"""

from __future__ import annotations

import ctypes
import signal
import sys

import psutil

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36  # from linux/prctl.h


def adopt_orphans() -> bool:
    """Become the parent of every descendant whose own parent ends; whether the system can."""
    return sys.platform == "linux" and ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1) == 0


def dies_with_us() -> None:
    """To be called in the child: ask for SIGTERM when the watcher is killed, as a last resort."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


class Tree:
    """The processes that descend from this one."""

    def __init__(self, *, adopts: bool) -> None:
        self._me = psutil.Process()
        self._adopts = adopts
        self._known: dict[int, psutil.Process] = {}

    def alive(self) -> list[psutil.Process]:
        """Those that have not ended, the program itself among them."""
        found = {process.pid: process for process in self._me.children(recursive=True)}
        if not self._adopts:  # also those that were ours once, and what they started
            for process in self._known.values():
                if process.pid not in found and process.is_running():
                    found[process.pid] = process
                    found |= {p.pid: p for p in _children(process)}
            self._known = found
        return [process for process in found.values() if not _ended(process)]

    def send(self, number: int) -> list[int]:
        """Send a signal to all; the numbers of those to whom it may not be sent."""
        refused = []
        for process in self.alive():
            try:
                process.send_signal(number)
                if number == signal.SIGTERM:
                    process.send_signal(signal.SIGCONT)  # one that sleeps would not hear it
            except psutil.AccessDenied:
                refused.append(process.pid)
            except psutil.Error:  # it has just ended
                continue
        return refused


def _children(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children(recursive=True)
    except psutil.Error:
        return []


def _ended(process: psutil.Process) -> bool:
    try:
        return process.status() in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    except psutil.AccessDenied:
        return False
    except psutil.Error:
        return True
