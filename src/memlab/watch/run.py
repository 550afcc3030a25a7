"""Run a program under watch: look, write down, warn, and stop it at the hard limit."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import time
from datetime import UTC, datetime

import psutil

from ..units import text
from .limits import limit, machine_bytes, seconds
from .live import Live
from .opted import FOLDER, as_lines, said
from .program import Program
from .record import Record
from .samplers import HAS_PSS, Cards, find_cards, process_bytes
from .signals import Signals
from .tree import Tree, adopt_orphans

STOPPED = 121  # our exit code for a program that was stopped at the hard limit
BUSY = 5  # of so many moments, at most one goes into looking: a slow look makes the next one wait
MOMENT = 0.3  # seconds in which workers may end after their program, before they are told to
SILENT = (signal.SIGWINCH,)  # passed on, and no event


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
) -> int:
    """Run the command to its end, or to the hard limit; returns the exit code.

    Exit code   the program's own; 128 + n if signal n ended it; 121 if it was stopped at the limit
    Limits      "20GiB" or "90%", of the card's memory where there is one, else of the machine's;
                `of` ("device" or "process") chooses
    No orphan   what the program left running when it ended is stopped too, politely, then firmly.
                On Linux the program is also asked to end (SIGTERM) if the watcher itself is killed
    Leaves out  what comes and goes between two looks: `largest_process_bytes` of the record's last
                event is the system's own high-water mark, of the largest process
    Raises      ValueError, with nothing written, for input that makes no sense or for a program
                that cannot be run; OSError where the record cannot be written
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
                record.publish()
            except OSError as error:
                record.discard()
                raise ValueError(f"cannot run {command[0]!r}: {error.strerror}") from error
            live = Live()
            if quiet:
                live.mute()
            try:
                run = Watch(program, tree, cards, record, signals, live, folder, head)
                return run.run(asked, every, grace)
            except BaseException:  # whatever it is: nothing runs on without its guard
                tree.send(signal.SIGTERM)
                raise
            finally:
                live.close()
                program.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Watch:
    """One program and what is known of it."""

    def __init__(
        self,
        program: Program,
        tree: Tree,
        cards: Cards | None,
        record: Record,
        signals: Signals,
        live: Live,
        folder: str,
        head: dict,
    ) -> None:
        self.program, self.tree, self.cards, self.record = program, tree, cards, record
        self.signals, self.live, self.folder = signals, live, folder
        self._source, self._total = head["source"], head["total_bytes"]
        self._began = time.monotonic()
        self._told_trouble = self._told_silent = False

    def run(self, limits: dict[str, int], every: float, grace: float) -> int:
        soft, hard = limits.get("soft limit"), limits.get("hard limit")
        stopped: dict | None = None
        warned, ends, next_look = False, float("inf"), 0.0
        while self.program.code is None:
            now = self._now()
            if now >= next_look:
                seen = self._look(now)
                next_look = now + max(every, BUSY * (self._now() - now))
                if soft is not None and seen >= soft and not warned:
                    warned = True
                    self.record.event(now, "soft-limit", limit=soft, bytes=seen)
                    self._say(f"soft limit: {text(seen)} of {text(soft)} after {now:.1f} s")
                if hard is not None and seen >= hard and stopped is None:
                    stopped = self.record.event(now, "hard-limit", limit=hard, bytes=seen)
                    self._say(f"hard limit: {text(seen)} of {text(hard)} after {now:.1f} s: stop")
                    self.tree.send(signal.SIGTERM)
                    ends = self._now() + grace
            if self._now() >= ends:
                break
            self.signals.wait(min(next_look, ends) - self._now())
            self.program.reap()
            self._pass_on()
        left = self._stop(ends if stopped is not None else None, grace)
        code = self.program.code
        if stopped is not None:
            stopped["alive"] = said(self.folder)
            for line in sum(map(as_lines, stopped["alive"]), []):
                self._say(line)
            code = STOPPED
        elif code is None:  # it cannot be stopped, see `_stop`
            code = 128 + signal.SIGKILL
        more = {"code": self.program.code, "largest_process_bytes": self.program.largest}
        self.record.event(self._now(), "exit", **more, **({"left": left} if left else {}))
        self.record.close(code)
        self._trouble()
        if self.live.close():
            self._say(f"peak {text(self.record.peak)} in {self._now():,.1f} s, exit code {code}")
        return code

    def _look(self, now: float) -> int:
        processes = self.tree.alive()
        held = process_bytes(processes)
        on_card = None if self.cards is None else self.cards.bytes(p.pid for p in processes)
        seen = self.record.look(now, held, on_card)
        if self.cards is not None and on_card is None and not self._told_silent:
            self._told_silent = True
            self._say("the card's driver does not answer")
        self._trouble()
        words = f" memlab watch  {now:,.1f} s   processes {text(held)}"
        if on_card is not None:
            words += f"   card {text(on_card)}"
        self.live.draw(f"{words}   peak {text(self.record.peak)} of {text(self._total)}")
        return seen

    def _pass_on(self) -> None:
        for number in self.signals.take():
            if number not in SILENT:
                self.record.event(self._now(), "signal", signal=signal.Signals(number).name)
            self.program.send(number)

    def _stop(self, ends: float | None, grace: float) -> list[int]:
        """End whatever still runs, politely until `ends`, then firmly; those that nobody can."""
        if not self.tree.alive() and self.program.code is not None:
            return []
        if ends is None:  # the program has ended by itself: its workers may be about to
            ends = self._now() + MOMENT
            while self._now() < ends and self._lives():
                self.signals.wait(0.01)
            if not (left := self.tree.alive()):
                return []
            self._say(f"stopping what it left running: {', '.join(str(p.pid) for p in left)}")
            self.tree.send(signal.SIGTERM)
            ends = self._now() + grace
        while self._now() < ends and self._lives():
            self.signals.wait(min(0.05, ends - self._now()))
        patience = self._now() + 5
        while self._lives() and self._now() < patience:
            self.tree.send(signal.SIGKILL)
            self.signals.wait(0.02)
        self.program.reap()  # what has just been killed
        left = sorted(process.pid for process in self.tree.alive())
        if left:
            self._say(
                f"cannot stop {', '.join(map(str, left))}: not ours to kill, or in the system"
            )
        return left

    def _lives(self) -> bool:
        self.program.reap()
        self._pass_on()
        return bool(self.tree.alive())

    def _now(self) -> float:
        return time.monotonic() - self._began

    def _trouble(self) -> None:
        if self.record.trouble is not None and not self._told_trouble:
            self._told_trouble = True
            self._say(self.record.trouble)

    @staticmethod
    def _say(words: str) -> None:
        try:
            print(f"memlab watch: {words}", file=sys.stderr, flush=True)
        except OSError:  # nobody listens any more
            pass


def _cards(of: str | None) -> Cards | None:
    """The cards to look at; None where there is none and none was asked for."""
    try:
        return find_cards()
    except ModuleNotFoundError as error:
        raise ValueError(
            f"there is an NVIDIA card, and asking its driver needs {error.name}: "
            "pip install 'memlab[watch]'"
        ) from error
    except LookupError as error:
        if of == "device":
            raise ValueError(f"no device to watch ({error}); --of process watches memory") from None
        return None
