"""Write the record of a watched program, so that it is a whole JSON document at any moment.

Why not lines that are only appended? Then the file would be no JSON while the program runs, nor
after the watcher was killed, and every reader would need to know. Why not a new file that replaces
the old one, each time? A day of samples would be written again ten times a second. Here each sample
goes over the closing brackets, which follow it again in the same write: one short write a sample,
and what `kill -9` leaves behind ends where a sample ends.

The file is a little longer than its text, filled up with blanks, which JSON allows. So most writes
change one page of a file whose length stays, and that page reaches a disk whole or not at all.
"""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

from ..files.timelines import COUNTS, VERSION

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

BUSY = "--out {}: another memlab watch is writing it"
PAGE = 4096
SYNC_EVERY = 2.0  # seconds: what a machine that loses power may take with it


class TimelineWriter:
    """A timeline file that grows: `publish` it, `sample`, `event`, `close` with the exit code.

    Unit        bytes, and seconds since the program started
    One writer  has the file: a lock says so, which the system drops when the writer ends
    Raises      OSError where the file cannot be made, ValueError where another writer has it
    """

    def __init__(self, path: str | Path, head: dict[str, Any]) -> None:
        self._counts = {key: head[key] for key in COUNTS if key in head}
        told = {k: v for k, v in head.items() if k not in self._counts}
        opening = json.dumps({"memlab_timeline": VERSION, **told, **self._counts})
        self._events: list[dict[str, Any]] = []
        self._source, self._samples = head["source"], 0
        self._peak, self._exit, self._end, self._size = 0, "null", 0, 0
        self._path = Path(path)
        self._fresh = self._path.with_name(f".{self._path.name}.new")
        self._file = _locked(self._fresh)
        try:
            if _is_locked(self._path):
                raise ValueError(BUSY.format(self._path.name))
            self._put(opening.removesuffix("}") + ', "samples": [')
        except (OSError, ValueError):
            self.discard()
            raise
        self._done = threading.Event()
        self._syncing = threading.Thread(target=self._sync, daemon=True)

    def publish(self) -> None:
        """Put the file in its place, all at once; what was there before is gone."""
        os.replace(self._fresh, self._path)
        self._syncing.start()

    def discard(self) -> None:
        """Leave no file; what was there before stays."""
        self._fresh.unlink(missing_ok=True)  # first: whoever gets the lock then looks again
        os.close(self._file)

    def sample(self, seconds: float, process: int, device: int | None) -> None:
        """Add what was seen at a moment."""
        seen = device if self._source == "device" else process
        self._peak = max(self._peak, seen or 0)
        comma, self._samples = "," if self._samples else "", self._samples + 1
        self._put(f"{comma}\n{json.dumps([round(seconds, 3), process, device])}")

    def known(self, peak: int) -> None:
        """Raise the peak to one that no look fell on; what is written next has it."""
        self._peak = max(self._peak, peak)

    def event(self, event: dict[str, Any]) -> None:
        """Add something that happened: {"at": seconds, "kind": ..., ...}.

        Written again with every sample: what is added to the dictionary later is in the file too.
        """
        self._events.append(event)
        self._put("")

    def close(self, code: int | None) -> None:
        """Write the exit code and cut the blanks off."""
        self._done.set()
        self._syncing.join()
        self._exit = json.dumps(code)
        try:
            self._put("")
            os.ftruncate(self._file, self._end + len(self._tail()))
            os.fsync(self._file)
        finally:
            os.close(self._file)

    def _tail(self) -> bytes:
        events = ",\n".join(map(json.dumps, self._events))
        last = f'"peak_bytes": {self._peak}, "exit": {self._exit}}}\n'
        return f'\n],\n"events": [\n{events}\n],\n{last}'.encode()

    def _put(self, words: str) -> None:
        """Write the words where the tail began, and the tail after them, all at once."""
        more = words.encode()
        data = more + self._tail()
        ends = self._end + len(data)
        size = self._size if ends <= self._size else -(-ends // PAGE) * PAGE
        data = data.ljust(size - self._end)
        if os.pwrite(self._file, data, self._end) != len(data):
            raise OSError("the disk took only a part of it")
        self._end, self._size = self._end + len(more), size

    def _sync(self) -> None:
        """Send what is new to the disk now and then; a slow disk must not hold up the guard."""
        while not self._done.wait(SYNC_EVERY):
            try:
                os.fdatasync(self._file) if hasattr(os, "fdatasync") else os.fsync(self._file)
            except OSError:
                return  # the next write says what is wrong


def _locked(fresh: Path) -> int:
    """The new file, empty and locked. Its lock goes with it to the place where it is published.

    Raises      ValueError where another writer is about to publish it
    """
    import fcntl  # not on Windows, where nothing is watched

    while True:
        if fresh.is_symlink():
            raise ValueError(f"--out: {fresh} is a link, and is not followed")
        file = os.open(fresh, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o666)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(file), os.stat(fresh)):
                os.ftruncate(file, 0)  # what a writer that was killed has left
                return file
        except BlockingIOError:
            os.close(file)
            raise ValueError(BUSY.format(fresh.name[1:].removesuffix(".new"))) from None
        except FileNotFoundError:  # published or discarded meanwhile
            pass
        os.close(file)


def _is_locked(path: Path) -> bool:
    """Whether a running writer has published the file."""
    import fcntl

    try:
        file = os.open(path, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False
