"""A run in a process of its own, ended with all its children when its time is over."""

import multiprocessing
import os
import signal
import sys
import traceback
from importlib.util import find_spec

from gpu_day.note import Note
from gpu_day.runs import PATIENCE, One

LEAST = 10  # seconds in which no run gets anywhere


def apart(one: One, note: Note, small: bool, left: float) -> None:
    """Run it, unless a library or the time is missing; its note says how it ended.

    left        seconds of the whole day
    """
    absent = [name for name in one.needs if find_spec(name) is None]
    if absent:
        return note.state("skipped", f"not installed: {', '.join(absent)}")
    if left < LEAST:
        return note.state("skipped", f"{left:.0f} s were left, {LEAST} are needed")
    seconds = min(one.limit * (PATIENCE if small else 1), left)
    # Forked before anything has touched CUDA, which cannot be shared.
    child = multiprocessing.get_context("fork").Process(target=_inside, args=(one, note, small))
    child.start()
    child.join(seconds)
    if child.is_alive():
        assert child.pid is not None
        os.killpg(child.pid, signal.SIGKILL)
        child.join()
        note.state("stopped", f"not over after {seconds:.0f} s")
    elif child.exitcode:
        note.state("failed", f"its process ended with {child.exitcode}")
    return None


def _inside(one: One, note: Note, small: bool) -> None:
    os.setsid()  # so that its own children end with it
    log = os.open(note.path.with_name("log.txt"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for stream in (1, 2):
        os.dup2(log, stream)
    print(f"\n=== {one.name}", flush=True)
    if one.setting:
        os.environ["PYTORCH_ALLOC_CONF"] = one.setting
    try:
        one.call(note, note.device, small)
    except BaseException as error:  # told in its place; the next run begins all the same
        traceback.print_exc()
        note.state("failed", f"{type(error).__name__}: {error}")
    else:
        if note.found()["state"] == "begun":
            note.state("measured")
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # without the exit handlers of the process that it was forked from
