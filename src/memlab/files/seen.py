"""What was seen of a run, from whatever there is: a number, a timeline, or a memory snapshot."""

from __future__ import annotations

import os

from ..base.frozen import dataclass
from ..base.safe_text import printable
from ..units import parse, text

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any


@dataclass(frozen=True)
class Seen:
    """The most bytes that were seen.

    amount      bytes, or the text that said so ("80 GB")
    level       what was counted: one of memlab.explain.explanation.LEVELS
    words       what else the file says, a line each
    """

    amount: int | str
    level: str
    words: tuple[str, ...] = ()


def seen(told: str, level: str | None = None) -> Seen:
    """A size such as "80 GB", the timeline of `memlab watch`, or a snapshot of PyTorch.

    level       says what a plain number counted; a file knows it
    Raises      ValueError for a file that is neither and for a text that is no size; OSError for
                a file that cannot be read
    """
    if os.path.isfile(told):
        with open(told, "rb") as file:
            is_pickle = file.read(1) == b"\x80"
        return _snapshot(told) if is_pickle or told.endswith(".pickle") else _timeline(told)
    try:
        parse(told)
    except ValueError as error:
        raise ValueError(f"{told!r} is no file, and as a size: {error}") from None
    return Seen(told, level or "device")


def _timeline(path: str) -> Seen:
    import warnings

    from .timelines import read_timeline

    with warnings.catch_warnings(record=True) as said:  # that the file is cut off
        warnings.simplefilter("always")
        found: dict[str, Any] = read_timeline(path)
    if not found["peak_bytes"]:
        raise ValueError(f"{path}: the run ended before the first look, so nothing was seen")
    command = printable(" ".join(found["command"]))
    words = f"{command}: {len(found['samples']):,} samples"
    more = ("it counts the whole card, other processes too",)
    card = found["source"] == "device" and found.get("device_counts") == "card"
    return Seen(
        found["peak_bytes"],
        found["source"],
        (words, *(str(w.message) for w in said), *(more if card else ())),
    )


def _snapshot(path: str) -> Seen:
    from .snapshots import read_snapshot

    found = read_snapshot(path)
    lines = [f"{text(place.bytes):>10}   {printable(place.where)}" for place in found.at_peak[:5]]
    return Seen(found.peak, "allocated", ("the snapshot's peak, by line", *lines))
