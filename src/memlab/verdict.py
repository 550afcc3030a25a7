"""Whether a step fits a card: *fits*, *tight* or *does not fit*, one answer for every door.

does not fit    what tensors hold, with what no allocator avoids beside it, exceeds the card: the
                CUDA context, and cuBLAS's workspaces
fits            all that is within the card even if the allocator reserves as much more as most
                posted runs did, or as a replay of this step does, and NCCL takes what it may
tight           neither: what the allocator and NCCL do decides, and this run may end out of memory

Nothing here simulates: who asks knows the peak, so that the page's engine asks the same function.
"""

from __future__ import annotations

from .base.frozen import dataclass
from .base.message import Listed, Message
from .devices import Device, card
from .terms.context import CONTEXT, NCCL
from .terms.workspaces import CUBLAS, LARGE, cublas_workspaces
from .units import text, whole

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from .run import Run

FITS, TIGHT, DOES_NOT_FIT = "fits", "tight", "does not fit"
# What posted runs of training reserved beyond what their tensors held at most, in thousandths of
# that: half of RUNS at most MEDIAN, three in four at most BAND. A step that reserved more has not
# failed for it, as the allocator gives unused blocks back before it does.
# Source      research/posted/band.json, run by run; its ask.py wrote it, a test does again
RUNS, MEDIAN, BAND = 25, 105, 132

HEADS = {
    FITS: "it fits {card}: {parts}",
    TIGHT: "tight on {card}, it may run out of memory: {parts}",
    DOES_NOT_FIT: "it does not fit {card}: {parts}",
}
HELD, RESERVED = "{size} allocated", "{size} reserved by the replay"
BESIDE = "{size} CUDA context and cuBLAS"
OF_NCCL = "up to {size} NCCL"
MOST = "up to {size} in all with the {percent}% that {runs} posted runs show"
LEAST, THERE = "{size} in all", "{size} are there"
ASKED = "its peak is {peak}, and {limit} are there"  # where somebody says what to leave free


@dataclass(frozen=True)
class Room:
    """What a card has for a step.

    name        of the card
    there       bytes of it, less what somebody wants left free
    beside      bytes that are taken beside tensors in any case
    nccl        bytes that NCCL may take
    band        thousandths of a peak that the allocator may reserve beyond it
    """

    name: str
    there: int
    beside: int = 0
    nccl: int = 0
    band: int = 0

    @property
    def surely(self) -> int:
        """The largest peak that fits."""
        return self.of_allocator * 1000 // (1000 + self.band)

    @property
    def at_most(self) -> int:
        """The largest peak that may fit."""
        return max(0, self.there - self.beside)

    @property
    def of_allocator(self) -> int:
        """What the allocator may reserve in any case."""
        return max(0, self.there - self.beside - self.nccl)

    def verdict(self, peak: int, reserved: int | None = None) -> Verdict:
        """What is to be said of a step with this peak.

        reserved    bytes that a replay of the step in PyTorch's allocator reserves, where there is
                    one; where just what somebody says is left free, it decides
        """
        fails = reserved is not None and reserved > self.of_allocator
        if peak > self.at_most or (fails and not self.band):
            word = DOES_NOT_FIT
        else:
            word = TIGHT if peak > self.surely or fails else FITS
        return Verdict(word, self, peak, reserved)

    def most(self, peak: int, reserved: int | None = None) -> int:
        """What it may come to in all."""
        held = peak * (1000 + self.band) // 1000
        if self.band and reserved is not None:
            held = max(held, reserved)
        return held + self.beside + self.nccl


@dataclass(frozen=True)
class Verdict:
    """One of FITS, TIGHT, DOES_NOT_FIT, and the bytes that make it so."""

    word: str
    room: Room
    peak: int
    reserved: int | None = None

    @property
    def fits(self) -> bool:
        return self.word == FITS

    @property
    def over(self) -> int:
        """Bytes of all that it may come to beyond what is there."""
        return max(0, self.room.most(self.peak, self.reserved) - self.room.there)

    def told(self) -> str:
        """The verdict with its parts."""
        return Message(HEADS[self.word], card=self.room.name, parts=self.parts())

    def parts(self) -> str:
        """The bytes of each part, and what is there."""
        room = self.room
        if not room.band:
            return Message(ASKED, peak=text(self.peak), limit=text(room.there))
        parts = [Message(HELD, size=text(self.peak))]
        if self.reserved is not None:
            parts.append(Message(RESERVED, size=text(self.reserved)))
        parts.append(Message(BESIDE, size=text(room.beside)))
        if self.word == DOES_NOT_FIT:
            parts.append(Message(LEAST, size=text(self.peak + room.beside)))
        else:
            if room.nccl:
                parts.append(Message(OF_NCCL, size=text(room.nccl)))
            most = text(room.most(self.peak, self.reserved))
            parts.append(Message(MOST, size=most, percent=percent(room.band), runs=RUNS))
        parts.append(Message(THERE, size=text(room.there)))
        return Listed(", ", parts)

    def __str__(self) -> str:
        return str(self.told())


def room_for(run: Run, on: str | int | Device, spare: int | None = None) -> Room:
    """What a card has for one rank of such a run; `room_on` says the rest."""
    return room_on(on, spare, 2 if run.phase == "train" else 1, run.devices.ranks)


def room_on(
    on: str | int | Device, spare: int | None = None, threads: int = 2, ranks: int = 1
) -> Room:
    """What a card has for a step.

    on          a card ("RTX 4090"), a size ("24 GB"), or bytes as a number of Python's
    spare       None: context, workspaces, NCCL and the band of posted runs. A number of bytes: just
                these are left free, and a step fits as soon as its tensors do
    threads     that multiply: 2 where there is a backward pass, else 1
    Unit        bytes
    Leaves out  other programs on the card; communicators of NCCL beyond the first one
    Raises      ValueError for an unknown device or a size that is none
    """
    found = card(on)
    if spare is not None:
        return Room(found.name, max(0, found.limit - whole("spare", spare)))
    beside = CONTEXT + workspaces(found, threads)
    return Room(found.name, found.limit, beside, NCCL if ranks > 1 else 0, BAND)


def workspaces(found: Device, threads: int) -> int:
    """Those of cuBLAS; the larger ones where it is not known which this card gets."""
    if found.capability is None or found.capability not in CUBLAS:
        return threads * LARGE
    return cublas_workspaces(found.capability, threads=threads)


def percent(band: int) -> str:
    """Thousandths as a reader reads them: 121 -> "12.1"."""
    return f"{band // 10}.{band % 10}" if band % 10 else f"{band // 10}"
