"""A program in a process group of its own: started, told of signals, given the terminal."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping

from .tree import dies_with_us


class Program:
    """A running program, and how it ended.

    code        its exit code; 128 + n if signal n ended it; None while it runs
    largest     bytes that its largest process held at most (RSS), as the system counted
    own         bytes of this process before it became two: so much the system counts of the program
                too, until it was another program
    Terminal    if both input and output of this process are the terminal it runs in, the program
                gets it: it may read what is typed, Ctrl-C goes to it alone, and Ctrl-Z stops both.
                Otherwise (a pipe) it runs in the background, Ctrl-C is passed on to it, and it
                gets the terminal when it wants to read from it
    Raises      OSError for a program that does not exist or cannot be run
    """

    def __init__(self, command: list[str], environment: Mapping[str, str]) -> None:
        self.code: int | None = None
        self.largest, self.own = 0, _most(resource.getrusage(resource.RUSAGE_SELF))
        self._terminal = 0 if os.isatty(0) and os.isatty(1) else None
        try:
            self._child = _started(command, environment)
        except OSError as error:
            if error.errno != errno.ENOEXEC:
                raise
            # A script without #!: a shell runs it, as it does for env, nice and make.
            script = shutil.which(command[0]) or command[0]
            self._child = _started(["/bin/sh", script, *command[1:]], environment)
        # From here on this process may write to the terminal while the program has it.
        self._before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        self._go_on()  # if it asked for the terminal before, it was stopped for that

    def send(self, number: int) -> None:
        """Send a signal to the program's process group; Ctrl-Z stops this process too."""
        if number == signal.SIGCONT:
            self._go_on()
        else:
            self._send(number)
            if number == signal.SIGTSTP:
                _sleep()
                self._go_on()

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
                if number == self._child.pid:
                    self._stopped(os.WSTOPSIG(status))
                continue
            self.largest = max(self.largest, _most(usage))
            if number == self._child.pid:
                ended = os.waitstatus_to_exitcode(status)
                self._child.returncode = ended  # so that Popen does not wait for it too
                self.code = ended if ended >= 0 else 128 - ended

    @property
    def least(self) -> int:
        """What the program is known to have held at some moment, whoever looked; 0: nothing is."""
        return self.largest if self.largest > self.own else 0

    def close(self) -> None:
        """Take the terminal back."""
        self._take()
        signal.signal(signal.SIGTTOU, self._before)

    def _send(self, number: int) -> None:
        if self.code is not None:
            return  # the number of the group may be another's by now
        try:
            os.killpg(self._child.pid, number)
        except ProcessLookupError:  # ended, and not reaped yet
            pass

    def _stopped(self, number: int) -> None:
        """Do as a shell does with a program that has stopped."""
        if number in (signal.SIGTTIN, signal.SIGTTOU):  # it wants the terminal
            self._terminal = 0
            # If a shell has it, the whole job stops until the shell's `fg`. Where nobody can
            # continue us, the program stays as it is: it would only ask again.
            if _group(0) == os.getpgrp() or (_group(0) is not None and _sleep()):
                self._go_on()
        elif number == signal.SIGTSTP and self._terminal is not None:
            self._take()
            _sleep()
            self._go_on()

    def _go_on(self) -> None:
        """Let it run, in the terminal if that is ours now; a shell's `bg` keeps it for itself."""
        if self._terminal is not None and _group(self._terminal) == os.getpgrp():
            _foreground(self._terminal, self._child.pid)
        self._send(signal.SIGCONT)

    def _take(self) -> None:
        if self._terminal is not None and _group(self._terminal) == self._child.pid:
            _foreground(self._terminal, os.getpgrp())


def _most(usage: resource.struct_rusage) -> int:
    unit = 1 if sys.platform == "darwin" else 1024  # man getrusage: macOS counts in bytes
    return usage.ru_maxrss * unit


def _started(command: list[str], environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command,
        env=environment,
        process_group=0,
        # What a shell opened for the program, such as <(...), is passed on; nothing of ours is.
        close_fds=False,
        preexec_fn=dies_with_us if sys.platform == "linux" else None,
    )


def _sleep() -> bool:
    """Stop, with whatever a shell started beside us, until it continues us; whether it did so.

    The system does not stop a process group that no shell looks after any more.
    """
    woken: list[int] = []
    on_stop = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
    on_cont = signal.signal(signal.SIGCONT, lambda number, _: woken.append(number))
    os.killpg(0, signal.SIGTSTP)
    signal.signal(signal.SIGTSTP, on_stop)
    signal.signal(signal.SIGCONT, on_cont)
    return bool(woken)


def _group(terminal: int) -> int | None:
    """The process group that has the terminal; None where it is none."""
    try:
        return os.tcgetpgrp(terminal)
    except OSError:
        return None


def _foreground(terminal: int, group: int) -> None:
    try:
        os.tcsetpgrp(terminal, group)
    except OSError:  # the group has ended, or the terminal is gone
        pass
