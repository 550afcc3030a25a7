"""What a simulated step and a simulated call tell alike: a table of their terms, a replay."""

from __future__ import annotations

from ...base.table import as_html, as_text, cell

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

    from .storage_log import Log


class Simulated:
    """A step or a call whose every allocation is in a log.

    TERMS       the terms in their order
    """

    TERMS: tuple[str, ...] = ()
    if TYPE_CHECKING:
        held: dict[str, int]
        held_contents: dict[str, dict[str, int]]
        log: Log

        @property
        def peak(self) -> Any: ...

    def replay(self, capacity: int | None = None, *, expandable: bool = False) -> Any:
        """What was simulated in PyTorch's caching allocator: allocated, reserved, what fits.

        Source      memlab.terms.replay, whose `Replay` is returned
        Leaves out  what a simulation leaves out, and the CUDA context
        Raises      ValueError for one that did not simulate every layer
        """
        return self.log.replay(capacity, expandable)

    def table(self) -> list[list[str]]:
        """Terms, and what is alive of each at the moments that are held, and at the peak."""
        columns = {**self.held_contents, f"peak ({self.peak.moment})": self.peak.contents}
        names = [n for n in self.TERMS if any(found.get(n) for found in columns.values())]
        head = ["bytes", *(moment.replace("_", " ") for moment in columns)]
        body = [[n, *(cell(found.get(n, 0)) for found in columns.values())] for n in names]
        totals = [*self.held.values(), self.peak.bytes]
        return [head, *body, ["total", *map(cell, totals)]]

    def __str__(self) -> str:
        return as_text(self.table(), foot=1)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return as_html(self.table(), foot=1)
