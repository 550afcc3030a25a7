"""What FSDP2 gathers at once: a group of parameters, and memory that comes and goes under them."""

from __future__ import annotations

from ...core.graph import Parameter, Tensor
from ...core.storage_log import Log, Record, Storage


class Gathered(Storage):
    """Memory that is filled and emptied, and stays the same storage for all who refer to it."""

    __slots__ = ("full",)

    def __init__(self, log: Log, record: Record) -> None:
        self.log, self.record, self.full = log, record, False

    def fill(self) -> None:
        self._turn(True)

    def empty(self) -> None:
        self._turn(False)

    def _turn(self, full: bool) -> None:
        if full != self.full:
            self.full = full
            self.log.note(self.record, self.record.bytes if full else -self.record.bytes)

    def __del__(self) -> None:
        self.empty()


class Group:
    """The parameters of a layer, or of the root: parts of them, and what they are gathered into.

    ranks       among which its parts are divided; 1: the part is whole, and copied when it is used
    waiting     the buffer that they have been gathered into, until it is copied
    partial     what has been scattered of earlier micro-batches, and not yet added up over replicas
    guarded     the part that an all-reduce over replicas works on, until backward is over
    kept        whole gradients of earlier micro-batches, in the format of the reduction
    begun, done whether its backward pass has begun, and whether it is over
    """

    def __init__(self, ranks: int) -> None:
        self.ranks = ranks
        self.parts: list[Parameter] = []
        self.wholes: list[Parameter] = []
        self.kept: dict[int, Tensor] = {}
        self.waiting: Tensor | None = None
        self.partial: Tensor | None = None
        self.guarded: Tensor | None = None
        self.is_whole = self.begun = self.done = False
