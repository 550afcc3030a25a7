"""The highest moment of a simulated step, from its log."""

from __future__ import annotations

from .result import Peak, term
from .storage_log import Log


def span(log: Log, step: str) -> slice:
    """The events of the first or the second step."""
    return slice(log.marks[f"{step}.forward"], log.marks[f"{step}.end"])


def first_peak(log: Log) -> int:
    """The most bytes of the first step."""
    return max(total for _, _, total in log.events[span(log, "first")])


def top_of(log: Log) -> int:
    """The most bytes of the second step."""
    return max(total for _, _, total in log.events[span(log, "second")])


def peak_of(log: Log) -> Peak:
    """The highest moment of the second step."""
    inside = span(log, "second")
    at = max(range(inside.start, inside.stop), key=lambda i: log.events[i][2])
    record, _, total = log.events[at]
    # The mark that was set last before it: "second.optimizer" or "second.backward.2", say.
    before = [name for name, i in log.marks.items() if i <= at and name.startswith("second.")]
    _, moment, *number = max(before, key=log.marks.__getitem__).split(".")
    in_pass = int(number[0]) if number else int(moment in ("forward", "loss", "backward"))
    found = {name: size for name, size in log.contents(at + 1, term).items() if size}
    if found.get("logits") and moment in ("forward", "backward"):
        moment = "loss"  # as `moments.hills` has it: while logits or their gradient are alive
    op = "" if record is None else record.op
    return Peak(total, moment, op, found, first_peak(log), in_pass)
