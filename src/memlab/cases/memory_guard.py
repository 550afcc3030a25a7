"""A guard: look at a number of bytes again and again, and stop the run that is above a limit."""

import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Watched:
    """What a guard saw.

    highest     the largest figure it read: a peak between two looks is not in it
    looks       how often it looked
    stopped     whether it stopped the run
    """

    highest: int
    looks: int
    stopped: bool


def guard(
    read: Callable[[], int | None],
    *,
    limit: int,
    over: float = 0.0,
    poll: float = 0.05,
    stop: Callable[[], None] = lambda: None,
    wait: Callable[[float], None] = time.sleep,
) -> Watched:
    """Read every `poll` seconds; stop what has been above `limit` for more than `over` seconds.

    read        bytes now, or None when the run is over
    over        0.0 stops at the first figure above the limit
    Leaves out  what happens between two looks; memory that `read` does not count
    Raises      ValueError for a limit or an interval of nothing
    """
    if limit <= 0 or poll <= 0 or over < 0:
        raise ValueError(f"limit={limit}, over={over}, poll={poll}: a guard needs sizes above zero")
    highest, looks, above = 0, 0, 0.0
    while (now := read()) is not None:
        highest, looks = max(highest, now), looks + 1
        if now > limit and above >= over:
            stop()
            return Watched(highest, looks, True)
        above = above + poll if now > limit else 0.0
        wait(poll)
    return Watched(highest, looks, False)


def run_guarded(
    command: Sequence[str], *, limit: int, over: float = 0.0, poll: float = 0.05
) -> Watched:
    """Run a command, and end it by its process when its resident memory is above the limit.

    Unit        bytes that the system counts for this one process: its children are not in them
    Raises      OSError where the system has no /proc (anything but Linux)
    """
    status = Path("/proc/self/status")
    if not status.exists():
        raise OSError("no /proc/self/status: this guard asks Linux what a process holds")
    with subprocess.Popen(command) as run:

        def read() -> int | None:
            return None if run.poll() is not None else _resident(run.pid)

        return guard(read, limit=limit, over=over, poll=poll, stop=run.kill)


def _resident(pid: int) -> int | None:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:  # it has just ended
        return None
    sizes = [line.split()[1] for line in lines if line.startswith("VmRSS:")]
    return int(sizes[0]) * 1024 if sizes else None


__all__ = ["Watched", "guard", "run_guarded"]
