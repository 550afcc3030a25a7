"""What a traced call in inference tells: the cache it leaves, its logits, its peak."""

from ..base.table import cell
from ..units import text
from .traced import Trace
from .tracker import Tracker


class TracedCall(Trace):
    """One call, a prompt or one more token; `Trace` says what the others mean.

    rows        weights, buffers; kv_cache and logits as the call returns them
    held        bytes before the call, and after it, while its result is held
    growth      bytes that the call added to the cache, of all sequences; None for a prompt
    """

    threads = 1

    def __init__(
        self,
        title: str,
        tracker: Tracker,
        rows: dict[str, int],
        marks: dict[str, int],
        growth: int | None,
    ) -> None:
        super().__init__(title, tracker, rows, 0, marks, 0)
        self.growth = growth

    def to_dict(self) -> dict:
        """The figures as plain numbers and words, ready for JSON."""
        found = super().to_dict()
        found["peak"]["first_step_bytes"] = None  # no call is the first of its kind
        return found

    def _moments(self) -> list[list[str]]:
        sizes = {"cache": self.rows["kv_cache"], "logits": self.rows["logits"], "peak": self.peak}
        sizes |= {name.replace("_", " "): size for name, size in self.held.items()}
        if self.growth is not None:
            sizes["each new token adds"] = self.growth
        return [["moment", "bytes", "size"]] + [[n, cell(b), text(b)] for n, b in sizes.items()]
