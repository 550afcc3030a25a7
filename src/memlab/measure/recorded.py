"""What a tracker has recorded, ready to read: totals, the peak, and the contents of any moment."""

from collections.abc import Sequence

from .log import Event, Log, Record

CATEGORIES = ("weights", "buffers", "gradients", "optimizer", "inputs", "activations", "other")


class Recorded:
    """Reads an event log; `records` maps the number of a storage to what is known of it."""

    def __init__(self) -> None:
        self._log = Log()
        self.records: dict[int, Record] = {}

    @property
    def current(self) -> int:
        """Bytes alive now; after the block, bytes alive at its end."""
        self._log.settle()
        return self._log.total

    @property
    def peak(self) -> int:
        """Most bytes alive at once since the start or the last `reset_peak`."""
        self._log.settle()
        return self._log.peak

    @property
    def peak_event(self) -> Event | None:
        """The event that reached the peak first; None before any event."""
        self._log.settle()
        return self._log.events[self._log.peak_index] if self._log.peak_index >= 0 else None

    @property
    def timeline(self) -> Sequence[Event]:
        """Every event so far, in order."""
        self._log.settle()
        return self._log.events

    def reset_peak(self) -> None:
        """Forget the peak so far: it is what is alive now."""
        self._log.reset_peak()

    def alive(self, at: int | str | None = None) -> list[tuple[Record, int]]:
        """Storages alive now, right after event `at`, or at the "peak", with bytes, largest first.

        Raises      ValueError for an event that is not in the timeline
        """
        last = len(self.timeline) - 1
        if at == "peak":
            at = self._log.peak_index
        elif at is not None and (
            isinstance(at, bool) or not isinstance(at, int) or not 0 <= at <= last
        ):
            raise ValueError(f'at={at!r} is not an event (0 to {last}), "peak" or None for now')
        found = [(self.records[ident], size) for ident, size in self._log.alive(at).items()]
        return sorted(found, key=lambda pair: (-pair[1], pair[0].ident))

    def contents(self, at: int | str | None = None) -> dict[str, int]:
        """Bytes by category now, right after event `at`, or at the "peak"; they add to the total.

        Raises      ValueError for an event that is not in the timeline
        """
        totals = dict.fromkeys(CATEGORIES, 0)
        for record, size in self.alive(at):
            totals[record.category] = totals.get(record.category, 0) + size
        return totals

    def __repr__(self) -> str:
        peak = self.peak_event
        where = "" if peak is None else f" at event {peak.index}, {peak.op}"
        return f"Tracker(current {self.current:,} B, peak {self.peak:,} B{where})"
