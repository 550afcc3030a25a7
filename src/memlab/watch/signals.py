"""Signals as a list to be read, and a wait that any of them ends."""

from __future__ import annotations

import os
import select
import signal

NAMES = "SIGINT SIGTERM SIGHUP SIGQUIT SIGUSR1 SIGUSR2 SIGTSTP SIGCONT SIGWINCH".split()


class Signals:
    """Collects signals while its `with` block runs; a child's end (SIGCHLD) only ends the wait.

    Leaves out  signals that were ignored before (nohup, a shell's background job): they stay so,
                and the program inherits that
    """

    def __enter__(self) -> Signals:
        self._came: list[int] = []
        self._read, self._write = os.pipe()
        for end in (self._read, self._write):
            os.set_blocking(end, False)
        self._before = {}
        for name in NAMES:
            number = getattr(signal, name)
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, lambda n, _: self._came.append(n))
        self._before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda *_: None)
        self._wakeup = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        return self

    def __exit__(self, *error: object) -> None:
        signal.set_wakeup_fd(self._wakeup)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        os.close(self._read)
        os.close(self._write)

    def take(self) -> list[int]:
        """Those that came since the last time, in order."""
        came, self._came = self._came, []
        return came

    def wait(self, seconds: float) -> None:
        """Until a signal comes, or for so long."""
        if not self._came and select.select([self._read], [], [], max(0.0, seconds))[0]:
            os.read(self._read, 65536)
