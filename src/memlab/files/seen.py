"""What was seen of a run, whatever it was read from: one value that an explanation begins with."""

from __future__ import annotations

from ..base.frozen import dataclass

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

# What a message or a table may say beside the figure itself, in bytes; and which card and process.
SIZES = (
    *("asked", "allocated", "reserved", "free", "capacity", "process", "others", "private"),
    "allowed",
)
NUMBERS = ("device", "rank")


@dataclass(frozen=True)
class Seen:
    """The most bytes that were seen.

    amount      bytes, or the text that said so ("80 GB")
    level       what was counted: one of memlab.explain.explanation.LEVELS
    words       what else the file says, a line each
    kind        what it was read from: a row of memlab.files.observation.TEXTS, "size", ...
    at_least    whether the run would have held more: a request that failed is in `amount`
    rounding    bytes to which a whole number is known; None: as memlab.explain says of any
    asked       of the request that failed, as the allocator asked the driver for it
    allocated   of PyTorch's blocks in use; reserved: of all that it has from the driver
    free        of the card; capacity: all of it
    process     of this process, the CUDA context too; others: of those beside it
    private     allocated in private pools (CUDA graphs)
    allowed     of a process that was given a share of the card
    device      number of the card; rank: of the process
    ranks       messages of one text, by rank; None: a message without one
    Unit        bytes
    """

    amount: int | str
    level: str
    words: tuple[str, ...] = ()
    kind: str = "size"
    at_least: bool = False
    rounding: int | None = None
    asked: int | None = None
    allocated: int | None = None
    reserved: int | None = None
    free: int | None = None
    capacity: int | None = None
    process: int | None = None
    others: int | None = None
    private: int | None = None
    allowed: int | None = None
    device: int | None = None
    rank: int | None = None
    ranks: tuple[int | None, ...] = ()

    @property
    def cached(self) -> int | None:
        """Bytes that PyTorch has from the driver and no block uses."""
        if self.reserved is None or self.allocated is None:
            return None
        return max(0, self.reserved - self.allocated)

    def as_dict(self) -> dict[str, Any]:
        """For programs: what was read, in whole bytes; null: it is not said there."""
        return {"kind": self.kind, "at_least": self.at_least} | {
            name: getattr(self, name) for name in (*SIZES, *NUMBERS)
        }
