"""What a simulated call tells: what it holds before and after, its peak, how its cache grows."""

from __future__ import annotations

from ..base.frozen import dataclass
from ..base.table import as_html, as_text, cell
from .storage_log import Log

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

TERMS = ("weights", "buffers", "inputs", "kv_cache", "activations", "logits", "other")


@dataclass(frozen=True)
class CallPeak:
    """The most bytes of a call, and when.

    moment      forward (up to the output head) or logits
    op          the operator whose result reached it
    contents    bytes by term; they add to `bytes`. While the cache grows, kv_cache holds one tensor
                of one layer twice; other: autocast's copies of the weights
    """

    bytes: int
    moment: str
    op: str
    contents: dict[str, int]


@dataclass(frozen=True, repr=False)
class Call:
    """A simulated call.

    rows        weights, buffers, inputs; kv_cache and logits as the call returns them; activations
                and other (autocast's copies of the weights): at the peak, for they all go
    held        all bytes before the call, and after it, while its result is held
    per_token   bytes that each generated token adds to the cache, of all sequences together
    log         every allocation and free
    """

    rows: dict[str, int]
    held: dict[str, int]
    held_contents: dict[str, dict[str, int]]
    peak: CallPeak
    per_token: int
    log: Log

    def replay(self, capacity: int | None = None, *, expandable: bool = False) -> Any:
        """The call in PyTorch's caching allocator, as `Step.replay`.

        Raises      ValueError for a call that did not simulate every layer
        """
        return self.log.replay(capacity, expandable)

    def table(self) -> list[list[str]]:
        """Terms, and what is alive of each before and after the call and at its peak."""
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
