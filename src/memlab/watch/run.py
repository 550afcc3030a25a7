"""Run a program under watch: look, write down, warn, and stop it at the hard limit."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
from datetime import UTC, datetime

import psutil

from ..base.extras import missing
from .announced import FOLDER
from .guard import Guard
from .limits import limit, machine_bytes, seconds
from .live_line import Live
from .program import Program
from .record import Record
from .samplers import HAS_PSS, Cards, find_cards
from .signals import Signals
from .tree import Tree, adopt_orphans

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Callable

NOT_RUN, NOT_FOUND = 126, 127  # as shells, env and nohup have them (POSIX, Exit Status)


def watch(
    command: list[str],
    *,
    soft_limit: str | None = None,
    hard_limit: str | None = None,
    every: float = 0.1,
    grace: float = 5.0,
    out: str | None = None,
    of: str | None = None,
    quiet: bool = False,
    tell: Callable[..., None] | None = None,
) -> int:
    """Run the command to its end, or to the hard limit; returns the exit code.

    Exit code   the program's own; 128 + n if signal n ended it; 121 if it was stopped at the limit;
                127 if there is no such program, 126 if it cannot be run
    Limits      "20GiB" or "90%", of the card's memory where there is one, else of the machine's;
                `of` ("device" or "process") chooses
    No orphan   what the program left running when it ended is stopped too, politely, then firmly.
                On Linux the program is also asked to end (SIGTERM) if the watcher itself is killed
    tell        takes the end, in place of a last line: what the timeline has beside its samples
    Leaves out  what comes and goes between two looks: `largest_process_bytes` of the record's last
                event is the system's own high-water mark, of the largest process
    Raises      ValueError, with nothing written, for input that makes no sense, and for an `out`
                that another watch is writing; OSError where the record cannot be written
    """
    if not hasattr(os, "wait4"):
        raise ValueError("memlab watch needs process groups and signals: Linux or macOS")
    seconds("--every", every, least_allowed=False)
    seconds("--grace", grace)
    if not command:
        raise ValueError("no program to run; put it after --: memlab watch -- python train.py")
    cards = _cards(of)
    source = "process" if cards is None or of == "process" else "device"
    if source == "device" and cards is not None:
        total, whose = cards.total, cards.name
    else:
        total, whose = machine_bytes(psutil.virtual_memory().total), "this machine"
    limits = {
        "soft limit": limit("--soft-limit", soft_limit, total, whose),
        "hard limit": limit("--hard-limit", hard_limit, total, whose),
    }
    asked = {name: size for name, size in limits.items() if size is not None}
    if len(asked) == 2 and asked["soft limit"] > asked["hard limit"]:
        raise ValueError(f"--soft-limit {soft_limit} is above --hard-limit {hard_limit}")
    head = {
        "command": command,
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "source": source,
        "device": None if cards is None else cards.name,
        "total_bytes": total,
        "process_counts": "PSS" if HAS_PSS else "RSS",
        "device_counts": None if cards is None else cards.counts,
    }
    folder = tempfile.mkdtemp(prefix="memlab-watch-")
    try:
        record = Record(out, head, asked)
        tree = Tree(adopts=adopt_orphans())
        with Signals() as signals:
            try:
                program = Program(command, {**os.environ, FOLDER: folder})
            except OSError as error:
                record.discard()
                print(f"memlab watch: cannot run {command[0]!r}: {error.strerror}", file=sys.stderr)
                return NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_RUN
            live = Live()
            if quiet:
                live.mute()
            try:
                record.publish()
                guard = Guard(program, tree, cards, record, signals, live, folder, tell)
                return guard.run(asked, every, grace)
            except BaseException:  # whatever it is: nothing runs on without its guard
                tree.send(signal.SIGTERM)
                raise
            finally:
                live.close()
                program.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _cards(of: str | None) -> Cards | None:
    """The cards to look at; None where there is none and none was asked for."""
    try:
        return find_cards()
    except ModuleNotFoundError as error:
        if of == "process":
            return None
        raise ValueError(
            missing("there is an NVIDIA card, and asking its driver", error, "watch")
        ) from error
    except LookupError as error:
        if of == "device":
            raise ValueError(f"no device to watch ({error}); --of process watches memory") from None
        return None
