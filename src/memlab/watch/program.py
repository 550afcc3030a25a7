"""A program in a process group of its own: started, told of signals, given the terminal."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping

from .tree import dies_with_us


class Program:
    """A running program, and how it ended.

    code        its exit code; 128 + n if signal n ended it; None while it runs
    largest     bytes that its largest process held at most (RSS), as the system counted
    Terminal    if both input and output of this process are the terminal it runs in, the program
                gets it: it may read what is typed, Ctrl-C goes to it alone, and Ctrl-Z stops both.
                Otherwise (a pipe) it runs in the background, and Ctrl-C is passed on to it
    Raises      OSError for a program that does not exist or cannot be run
    """

    def __init__(self, command: list[str], environment: Mapping[str, str]) -> None:
        self.code: int | None = None
        self.largest = 0
        self._terminal = _terminal()
        self._child = subprocess.Popen(
            command,
            env=environment,
            process_group=0,
            # What a shell opened for the program, such as <(...), is passed on; nothing of ours is.
            close_fds=False,
            preexec_fn=dies_with_us if sys.platform == "linux" else None,
        )
        # From here on this process may write to the terminal while the program has it.
        self._before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        self._give()

    def send(self, number: int) -> None:
        """Send a signal to the program's process group; Ctrl-Z stops this process too."""
        if self.code is not None:
            return  # the number of the group may be another's by now
        try:
            os.killpg(self._child.pid, number)
        except ProcessLookupError:  # ended, and not reaped yet
            return
        if number == signal.SIGTSTP:
            self._sleep()

    def reap(self) -> None:
        """Learn of every child that has ended, the program among them."""
        while True:
            try:
                number, status, usage = os.wait4(-1, os.WNOHANG | os.WUNTRACED)
            except ChildProcessError:
                return
            if number == 0:
                return
            if os.WIFSTOPPED(status):
                if number == self._child.pid and self._terminal is not None:
                    self._stopped(os.WSTOPSIG(status))
                continue
            unit = 1 if sys.platform == "darwin" else 1024  # man getrusage: macOS counts in bytes
            self.largest = max(self.largest, usage.ru_maxrss * unit)
            if number == self._child.pid:
                ended = os.waitstatus_to_exitcode(status)
                self._child.returncode = ended  # so that Popen does not wait for it too
                self.code = ended if ended >= 0 else 128 - ended

    def close(self) -> None:
        """Take the terminal back."""
        self._take()
        signal.signal(signal.SIGTTOU, self._before)

    def _give(self) -> None:
        if self._terminal is not None:
            _foreground(self._terminal, self._child.pid)
            self.send(signal.SIGCONT)  # it may have asked before, and been stopped for that

    def _take(self) -> None:
        if self._terminal is not None:
            _foreground(self._terminal, os.getpgrp())

    def _stopped(self, number: int) -> None:
        if number in (signal.SIGTTIN, signal.SIGTTOU):
            self._give()
        elif number == signal.SIGTSTP:
            self._take()
            self._sleep()
            self._give()

    def _sleep(self) -> None:
        """Stop, with whatever a shell started beside us, until the shell continues us."""
        before = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.killpg(0, signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, before)
        self.send(signal.SIGCONT)


def _terminal() -> int | None:
    """The terminal, if this process has it now and both its input and its output are there."""
    try:
        if os.isatty(0) and os.isatty(1) and os.tcgetpgrp(0) == os.getpgrp():
            return 0
    except OSError:
        pass
    return None


def _foreground(terminal: int, group: int) -> None:
    try:
        os.tcsetpgrp(terminal, group)
    except OSError:  # the group has ended, or the terminal is gone
        pass
