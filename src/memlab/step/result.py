"""What a simulated training step tells: what is held at each moment, the peak, its contents."""

from __future__ import annotations

from ..base.frozen import dataclass
from ..base.table import as_html, as_text, cell
from .saved_table import SavedTable
from .storage_log import Log, Record

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

TERMS = (
    "weights",
    "buffers",
    "gradients",
    "optimizer",
    "inputs",
    "activations",
    "logits",
    "other",
)


@dataclass(frozen=True)
class Peak:
    """The most bytes of a step, and when.

    moment      forward (up to the output head), loss, backward or optimizer
    op          the operator whose result reached it
    contents    bytes by term; they add to `bytes`
    micro_batch the first one that reached it, counted from 1; 0 in the optimizer
    """

    bytes: int
    moment: str
    op: str
    contents: dict[str, int]
    first_step_bytes: int
    micro_batch: int


@dataclass(frozen=True, repr=False)
class Step:
    """A simulated step in the steady state (the second: optimizer states exist).

    rows        weights, buffers, gradients, optimizer; activations and logits: what autograd keeps
                after the forward pass, before the output head and from it on
    held        all bytes after_forward and after_backward of the last micro-batch, between_steps
    saved       what one layer keeps for backward, tensor by tensor
    log         every allocation and free of both steps
    """

    rows: dict[str, int]
    held: dict[str, int]
    held_contents: dict[str, dict[str, int]]
    peak: Peak
    saved: SavedTable
    log: Log

    def replay(self, capacity: int | None = None, *, expandable: bool = False) -> Any:
        """Both steps in PyTorch's caching allocator: allocated and reserved bytes, and what fits.

        Source      memlab.terms.replay, whose `Replay` is returned
        Leaves out  what a simulation leaves out, and the CUDA context
        Raises      ValueError for a step that did not simulate every layer
        """
        return self.log.replay(capacity, expandable)

    def table(self) -> list[list[str]]:
        """Terms, and what is alive of each at the three moments and at the peak."""
        columns = {**self.held_contents, f"peak ({self.peak.moment})": self.peak.contents}
        names = [n for n in TERMS if any(found.get(n) for found in columns.values())]
        head = ["bytes", *(moment.replace("_", " ") for moment in columns)]
        body = [[n, *(cell(found.get(n, 0)) for found in columns.values())] for n in names]
        totals = [*self.held.values(), self.peak.bytes]
        return [head, *body, ["total", *map(cell, totals)]]

    def __str__(self) -> str:
        return as_text(self.table(), foot=1)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return as_html(self.table(), foot=1)


def term(record: Record) -> str:
    """weights, gradients, optimizer, buffers, inputs, activations, logits or other.

    Logits are all copies of them, kept for backward or not, and their gradients.
    """
    last = getattr(record.shape[-1], "letters", "") if record.shape else ""
    if record.category in ("activations", "other") and last == "V":
        return "logits"
    return record.category
