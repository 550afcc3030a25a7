"""The memory of a process as the operating system sees it: each function in a process of its own.

    python -m memlab.measure.process     reads calls from stdin, writes what they held to stdout

Anonymous memory has no file behind it: what malloc gave and somebody has written to. Mapped pages
are a file's; where memory is short the system drops them and reads them again later.
"""

import ctypes
import gc
import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import NamedTuple

from . import rss

M_MMAP_THRESHOLD = -3  # from malloc.h
PR_SET_THP_DISABLE = 41  # from linux/prctl.h


class Held(NamedTuple):
    """What a process held at one moment, beyond what it held before the call."""

    what: str
    anonymous: int
    mapped: int


def memory() -> tuple[int, int]:
    """Anonymous and mapped bytes of this process that are in memory now.

    Source      Linux, Documentation/filesystems/proc.rst, smaps_rollup: it walks the page table,
                while the counters in /proc/self/status may lag behind by many pages
    Unit        bytes, whole pages
    Leaves out  pages that were written out to swap
    Raises      RuntimeError where the system has no such file (anything but Linux)
    """
    found = rss.sizes("smaps_rollup")
    return found["Anonymous"], found["Rss"] - found["Anonymous"]


def available() -> bool:
    """Whether this system says what a process holds (Linux does)."""
    return (rss.FOLDER / "smaps_rollup").exists() and hasattr(os, "fork")


def apart(calls: Mapping[str, tuple[Callable, list, list]]) -> dict[str, list[Held]]:
    """Call functions, each in a process of its own, and say what each held at its moments.

    Shapes      calls: name -> (function, arguments, arguments of a first call); a function of a
                module, arguments that JSON can hold. It is called with one argument more, mark:
                mark("read") notes a moment
    First call  with something small, and not noted: it loads the code that the function needs, and
                the second call counts from where it ended
    Unit        bytes; noise of some hundred KiB, from the interpreter
    Leaves out  what comes and goes between two marks; {} where the system does not say
    Raises      RuntimeError with the function's own traceback; ValueError for one that another
                process cannot import
    """
    groups: dict[str, list] = {}
    for name, (function, arguments, first) in calls.items():
        if function.__module__ == "__main__" or "." in function.__qualname__:
            raise ValueError(f"{function.__qualname__} is in no module: put it into a file")
        call = [name, function.__module__, function.__name__, first, arguments]
        groups.setdefault(function.__module__, []).append(call)
    if not available():
        return {}
    # One module's calls after another's: what they need is imported once, right before them.
    found = dict(_ask([call for calls_of_one in groups.values() for call in calls_of_one]))
    return {name: found[name] for name in calls}


def _ask(calls: list) -> list[tuple[str, list[Held]]]:
    command = [sys.executable, "-m", "memlab.measure.process"]
    where = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        command, input=json.dumps(calls), capture_output=True, text=True, env=where
    )
    if done.returncode:
        raise RuntimeError(f"a call failed in its own process:\n{done.stderr}")
    answers = [line for line in done.stdout.splitlines() if line.startswith('["')]
    return [(name, [Held(*each) for each in held]) for name, held in map(json.loads, answers)]


def _child(module: str, name: str, first: list, arguments: list) -> list[tuple[str, int, int]]:
    """What one call held, without two habits that blur it.

    A block of 128 KiB or more gets pages of its own and gives them back: malloc would raise that
    limit as it goes, and keep what was freed. And a page is 4 KiB: where huge pages are on, up to
    2 MiB around each block that is touched would count.
    """
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):  # glibc has it
        libc.mallopt(M_MMAP_THRESHOLD, 128 * 1024)
    libc.prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0)
    function: Callable = getattr(importlib.import_module(module), name)
    function(*first, lambda what: None)
    gc.collect()
    held: list[tuple[str, int, int]] = []
    anonymous, mapped = memory()

    def mark(what: str) -> None:
        a, m = memory()
        held.append((what, a - anonymous, m - mapped))

    function(*arguments, mark)
    return held


def _serve() -> int:
    """Fork for each call, so that torch is imported once and each starts from the same memory."""
    imported = set()
    for name, *call in json.load(sys.stdin):
        if call[0] not in imported:
            importlib.import_module(call[0])
            imported.add(call[0])
            gc.collect()
            gc.freeze()  # a call need not look through what its code has brought
        sys.stdout.flush()
        if (child := os.fork()) == 0:
            status = 1
            try:
                print(json.dumps([name, _child(*call)]), flush=True)
                status = 0
            except Exception:
                sys.excepthook(*sys.exc_info())
            finally:
                os._exit(status)
        if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(_serve())
