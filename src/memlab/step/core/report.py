"""What a finished log of two steps says: the rows, what is held at three moments, and the peak."""

from __future__ import annotations

from .peak import peak_of
from .result import Step, term
from .saved_table import SavedTable
from .storage_log import Log, Record


def told(log: Log, last_backward: str, saved: SavedTable) -> Step:
    """The second step of a log whose marks are set.

    last_backward   the mark of the last micro-batch's backward pass
    Unit            bytes
    """
    moments = {
        "after_forward": log.marks[last_backward],
        "after_backward": log.marks["second.optimizer"],
        "between_steps": log.marks["second.end"],
    }
    contents = {moment: log.contents(at, term) for moment, at in moments.items()}
    stay, kept = contents["between_steps"], _kept(log, moments["after_forward"])
    rows = {
        "weights": stay["weights"],
        "buffers": stay.get("buffers", 0),
        "gradients": contents["after_backward"]["gradients"],
        "optimizer": stay.get("optimizer", 0),
        "activations": kept.get("layers", 0),
        "logits": kept.get("loss", 0),
    }
    if held_keys := contents["after_forward"].get("kv_cache"):
        rows["kv_cache"] = held_keys
    held = {moment: log.events[at - 1][2] for moment, at in moments.items()}
    return Step(rows, held, contents, peak_of(log), saved, log)


def _kept(log: Log, at: int) -> dict[str, int]:
    """Activations of the layers, and those of the loss."""

    def key(record: Record) -> str:
        if record.category != "activations":
            return "rest"
        return "loss" if record.part == "loss" else "layers"

    return log.contents(at, key)
