"""What stays of a run: the timeline as JSON and as a picture, and the peak for the live line."""

from __future__ import annotations

import os
from pathlib import Path

from .timeline_writer import TimelineWriter

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

MOST = 2000  # looks that the picture keeps: a guard's own memory must not grow with the run
DRAW_EVERY = 5.0  # seconds between two pictures of a running program


class Record:
    """Writes out.json at every look and out.svg now and then, both always whole.

    out         a file that ends in .json, or None: then nothing is written
    Trouble     a full disk ends the record, not the run: `trouble` says so, once
    Raises      ValueError for another ending; OSError where the files cannot be made
    """

    def __init__(self, out: str | None, head: dict[str, Any], limits: dict[str, int]) -> None:
        self.peak, self.total = 0, head["total_bytes"]
        self.trouble: str | None = None
        self._head, self._limits = head, limits
        self._looks: list[tuple[float, int]] = []
        self._merge, self._next_picture = 1, 0.0
        self._pending: tuple[float, int] | None = None
        self._count = 0
        self._events: list[dict[str, Any]] = []
        self._json, self._svg = self._files(out)
        if self._svg is not None:
            # Now, because the program has not begun: later, this import would cost some looks.
            from ..plot.watched import watched

            self._drawn: Any = watched
        self._writer = None if self._json is None else TimelineWriter(self._json, head)

    @staticmethod
    def _files(out: str | None) -> tuple[Path | None, Path | None]:
        if out is None:
            return None, None
        folder, name = os.path.split(out)  # of whom a link may be: the file itself is none
        path = Path(os.path.realpath(folder), name)
        if not path.parent.is_dir():
            raise ValueError(f"--out {out}: there is no folder {path.parent}")
        if path.suffix != ".json":
            raise ValueError(f"--out {out} does not end in .json")
        for one in (path, path.with_suffix(".svg")):
            if one.is_symlink():
                raise ValueError(f"--out: {one} is a link, and is not followed")
            if one.exists() and not one.is_file():
                raise ValueError(f"--out: {one} is there, and is no file")
        return path, path.with_suffix(".svg")

    def publish(self) -> None:
        """Put the file in its place: the program has started."""
        if self._writer is not None:
            self._writer.publish()

    def discard(self) -> None:
        """Leave nothing: the program could not be started."""
        if self._writer is not None:
            self._writer.discard()

    def look(self, seconds: float, process: int, device: int | None) -> int:
        """Note what was seen; returns the bytes of the source."""
        seen = (device or 0) if self._head["source"] == "device" else process
        self.peak = max(self.peak, seen)
        self._keep(seconds, seen)
        if self._writer is not None:
            self._try(self._writer.sample, seconds, process, device)
        if seconds >= self._next_picture:
            self._next_picture = seconds + DRAW_EVERY
            self._draw()
        return seen

    def known(self, least: int) -> None:
        """What the system counted of the largest process: the peak between two looks is no less.

        Of a card it says nothing.
        """
        if self._head["source"] == "process" and least > self.peak:
            self.peak = least
            if self._writer is not None:
                self._writer.known(least)

    def event(self, seconds: float, kind: str, **more: Any) -> dict[str, Any]:
        """Note what happened; changes to what is returned are written with the next look."""
        event = {"at": round(seconds, 3), "kind": kind, **more}
        self._events.append(event)
        if self._writer is not None:
            self._try(self._writer.event, event)
        return event

    def summary(self) -> dict[str, Any]:
        """What the timeline has beside its samples."""
        return self._head | {"peak_bytes": self.peak, "events": self._events}

    def close(self, code: int) -> None:
        """Write the end."""
        self._draw()
        if self._writer is not None:
            self._try(self._writer.close, code)

    def _keep(self, seconds: float, seen: int) -> None:
        """Keep the look, or the highest of so many; twice as many when there is no more room."""
        if self._pending is None or seen >= self._pending[1]:
            self._pending = (seconds, seen)
        self._count += 1
        if self._count < self._merge:
            return
        self._looks.append(self._pending)
        self._pending, self._count = None, 0
        if len(self._looks) >= MOST:
            pairs = zip(self._looks[::2], self._looks[1::2], strict=True)
            self._looks = [max(pair, key=lambda look: look[1]) for pair in pairs]
            self._merge *= 2

    def _draw(self) -> None:
        looks = self._looks + ([self._pending] if self._pending is not None else [])
        if self._svg is None or not looks:
            return
        who = self._head["device"] if self._head["source"] == "device" else "processes"
        counts = self._head[f"{self._head['source']}_counts"]
        words = {"program": "of this program", "card": "everything on the card"}
        # A newline, an escape, or half a character: an SVG may hold none of them.
        said = " ".join(self._head["command"])
        command = " ".join("".join(c if c.isprintable() else " " for c in said).split())
        picture = self._drawn(
            looks,
            title=f"Memory of {command if len(command) < 60 else command[:57] + '...'}",
            limits=self._limits,
            note=f"{who}, {words.get(counts, counts)}; {self._head['started']}",
        )
        fresh = self._svg.with_name(f".{self._svg.name}.{os.getpid()}.new")
        self._try(_made, fresh, picture.svg)
        self._try(os.replace, fresh, self._svg)
        if self.trouble is not None:  # a full disk has taken a part of it
            fresh.unlink(missing_ok=True)

    def _try(self, do: Any, *given: Any) -> None:
        if self.trouble is not None:
            return
        try:
            do(*given)
        except OSError as error:
            self.trouble = f"the record ends here: {error}"


def _made(path: Path, words: str) -> None:
    """A file that was not there: never one that a link of this name leads to."""
    path.unlink(missing_ok=True)
    with open(path, "x", encoding="utf-8") as file:
        file.write(words)
