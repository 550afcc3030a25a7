"""What is asked of a rehearsal, so that it can be asked again of another rank, or with a change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..devices import Device
from .command import Program

Change = Callable[[Any], None]  # of what a program uses, by memlab.measure.fake_cuda.undo.Changes


@dataclass(frozen=True)
class Asked:
    """One run of a program.

    card        that torch finds; `named` tells whether somebody said which, else it only stands in
    steps       optimizer steps after which it is stopped
    backend     cuda or cpu
    policy      what is assumed where values decide: memlab.measure.fake_cuda.assumed
    longest     whether every batch of a loader is that of the longest examples
    rank        of program.ranks, from 0
    number      of the card whose bytes are counted, where one process has several
    change      made to what the program uses before it begins
    sent        by stages of a pipeline to each other: memlab.rehearse.stages
    observer    who looks on: `enter(changes)` before it begins, `sees(func, args, kwargs, result)`
                for each operator
    """

    program: Program
    card: Device
    named: bool
    steps: int
    backend: str
    policy: dict[str, str] = field(default_factory=dict)
    longest: bool = False
    rank: int = 0
    number: int = 0
    change: Change | None = None
    sent: dict[tuple[int, int], Any] = field(default_factory=dict)
    observer: Any = None

    @property
    def counted(self) -> str:
        """The device whose tensors are counted."""
        return f"{self.backend}:{self.number}" if self.program.cards > 1 else self.backend

    @property
    def local(self) -> int:
        """The number of the rank's card on its machine."""
        return self.rank % self.program.local
