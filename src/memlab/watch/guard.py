"""The loop of a watched program: look, write down, warn, and stop all of it at the hard limit."""

from __future__ import annotations

import signal
import sys
import time

from ..base.machine import oom_kills
from ..base.safe_text import printable
from ..units import text
from .announced import as_lines, said
from .live_line import Live
from .program import Program
from .record import Record
from .samplers import Cards, process_bytes
from .signals import Signals
from .tree import Tree

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Callable

STOPPED = 121  # our exit code for a program that was stopped at the hard limit
BUSY = 5  # of so many moments, at most one goes into looking: a slow look makes the next one wait
MOMENT = 0.3  # seconds in which workers may end after their program, before they are told to
SILENT = (signal.SIGWINCH, signal.SIGCONT)  # passed on, and no events


class Guard:
    """Looks at a running program until it ends, or ends it."""

    def __init__(
        self,
        program: Program,
        tree: Tree,
        cards: Cards | None,
        record: Record,
        signals: Signals,
        live: Live,
        folder: str,
        tell: Callable[..., None] | None = None,
    ) -> None:
        self.program, self.tree, self.cards, self.record = program, tree, cards, record
        self.signals, self.live, self.folder = signals, live, folder
        self.tell, self._killed = tell, oom_kills()
        self._began = time.monotonic()
        self._told_trouble = self._told_silent = False

    def run(self, limits: dict[str, int], every: float, grace: float) -> int:
        """Until the program has ended and left nothing behind; the exit code."""
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
        if killed := (oom_kills() or 0) - (self._killed or 0):
            self._say(f"the system killed {killed} for want of memory in this container (oom_kill)")
            more["oom_kills"] = killed
        self.record.known(self.program.least)
        self.record.event(self._now(), "exit", **more, **({"left": left} if left else {}))
        self.record.close(code)
        self._trouble()
        if self.tell is not None:
            self.live.close()
            self.tell(**self.record.summary(), seconds=round(self._now(), 3), exit=code)
            return code
        # Where nobody could watch a line (a batch job, nohup), the last words are all there is.
        if self.live.close() or not (self.live.muted or self.live.able):
            peak = self.record.peak
            found = f"peak {text(peak)}" if peak else "it ended before anything was seen of it,"
            self._say(f"{found} in {self._now():,.1f} s, exit code {code}")
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
        self.live.draw(f"{words}   peak {text(self.record.peak)} of {text(self.record.total)}")
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
            print(f"memlab watch: {printable(words)}", file=sys.stderr, flush=True)
        except OSError:  # nobody listens any more
            pass
