"""Ctrl-C ends a command, wherever it comes: in an import, in a callback, between two rows."""

from __future__ import annotations

import signal
import sys

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

AGAIN = 0.5  # seconds: more than it takes to leave the block, less than one waits


class Interruptible:
    """While its block runs, a KeyboardInterrupt gets out of it.

    Why         Python drops what is raised in a callback of the garbage collector, of a weak
                reference, of a hook in C, and libraries have an `except:` here and there; then the
                program goes on as if nobody had asked. So an alarm asks again until the block is
                left, and its end asks a last time
    Leaves out  a call into C that takes long: Python raises when it returns. On Windows there is
                no alarm
    """

    def __enter__(self) -> Interruptible:
        self._told = False
        self._hook = sys.unraisablehook
        self._before: dict[int, Any] = {}
        if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            return self  # somebody else's, or ignored, as in a shell's background job
        try:
            for name in ("SIGINT", "SIGALRM"):
                if number := getattr(signal, name, None):
                    self._before[number] = signal.signal(number, self._stop)
            sys.unraisablehook = self._dropped
        except ValueError:
            pass  # not the main thread, which alone is interrupted
        return self

    def __exit__(self, kind: Any, *error: Any) -> None:
        if hasattr(signal, "setitimer") and self._before:
            signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        sys.unraisablehook = self._hook
        if self._told and kind is not KeyboardInterrupt:
            raise KeyboardInterrupt

    def _stop(self, *_: Any) -> None:
        if not self._told and hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, AGAIN, AGAIN)
        self._told = True
        raise KeyboardInterrupt

    def _dropped(self, what: Any) -> None:
        """Python would print that it ignores the interruption; here it comes again."""
        if not (self._told and what.exc_type is KeyboardInterrupt):
            self._hook(what)
