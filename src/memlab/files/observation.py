"""What was seen of a run, from whatever there is: a number, a pasted text, a file of any kind.

A text is asked of each kind in turn; a file first says by its bytes what it is. Nothing in it is
trusted: it has a size limit, no pattern that looks for something looks back farther than a few
characters, and what is printed of it is made printable.
"""

from __future__ import annotations

import os
import re
import sys

from ..base.safe_text import printable
from ..units import parse, text
from . import counter_text, oom_text
from .seen import Seen as Seen

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

STDIN = "-"
MOST_TEXT = 2**28  # bytes of a log or a trace, unpacked
PACKED = b"\x1f\x8b"
PICKLED = b"\x80"
COLOURS = re.compile(
    r"\x1b(?:\[[0-9;?]{0,30}[ -/]{0,3}[@-~]|\][^\x07\x1b\n]{0,300}(?:\x07|\x1b\\))"
)
# Kinds of text, each with who finds it, whatever stands around. The first that does is taken: a
# message says more than the tables that a program prints after it. An engine's log has PyTorch's
# message in it too, so its reader belongs before that one.
TEXTS = (
    (oom_text.KIND, oom_text.read),
    ("a table of torch.cuda.memory_summary()", counter_text.memory_summary),
    ("nvidia-smi's table or CSV", counter_text.nvidia_smi),
    ("Trainer's memory metrics", counter_text.trainer_metrics),
    ("figures such as max_memory_allocated", counter_text.named_figures),
)
FILES = ("a memory snapshot", "a timeline of memlab watch", "a memory timeline or trace of")
READ = f"{', '.join(what for what, _ in TEXTS)}, {', '.join(FILES)} torch.profiler"
LONG = 40  # characters of a size at most: what is longer was pasted


def seen(told: str, level: str | None = None) -> Seen:
    """A size such as "80 GB", a pasted text, or a file of one of these kinds; "-": standard input.

    level       says what a plain number counted; a file knows it
    Raises      ValueError for what is none of them, which names them; OSError for a file that
                cannot be read
    """
    if told == STDIN:
        return read(sys.stdin.buffer.read(MOST_TEXT + 1), "standard input")
    if os.path.exists(told):
        with open(told, "rb") as file:
            head = file.read(2)
            if head[:1] == PICKLED or told.endswith(".pickle"):
                return _snapshot(told)
            return read(head + file.read(MOST_TEXT), told)
    if len(told) > LONG or "\n" in told:
        return read(told.encode("utf-8", "replace"), "what was pasted")
    try:
        parse(told)
    except ValueError as error:
        found = _of_text(told)
        if found is not None:
            return found
        raise ValueError(f"{told!r} is no file, and as a size: {error}") from None
    return Seen(told, level or "device")


def read(data: bytes, name: str) -> Seen:
    """What a text, a JSON document or a snapshot says.

    Raises      ValueError, with the name and what is read, for anything else
    """
    if len(data) > MOST_TEXT:
        raise ValueError(f"{name} is larger than {text(MOST_TEXT)}: give the part that matters")
    if data[:2] == PACKED:
        data = _unpacked(data, name)
    if data[:1] == PICKLED:
        from .safe_pickle import load
        from .snapshots import summary

        return _told(summary(load(data, name), name))
    words = decoded(data)
    found = _document(words, name) if words.lstrip()[:1] in ("{", "[", "<") else None
    found = found or _of_text(words)
    if found is None:
        what = "is empty" if not words.strip() else "has none of what is read in it"
        raise ValueError(f"{name} {what}: {READ}")
    return found


def _of_text(words: str) -> Seen | None:
    words = COLOURS.sub("", words).replace("\r\n", "\n").replace("\r", "\n")
    for _, reader in TEXTS:
        if (found := reader(words)) is not None:
            return found
    return None


def decoded(data: bytes) -> str:
    """A text as a shell wrote it: PowerShell's `>` writes UTF-16."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", "replace")
    return data.decode("utf-8-sig", "replace")


def _unpacked(data: bytes, name: str) -> bytes:
    """What gzip packed, up to the limit.

    Raises      ValueError for more, and for what is damaged
    """
    import zlib

    opened = zlib.decompressobj(wbits=31)
    try:
        found = opened.decompress(data, MOST_TEXT + 1)
    except zlib.error:
        found = b""
    if not found:
        raise ValueError(f"{name} begins as gzip writes a file and is damaged")
    if len(found) > MOST_TEXT:
        raise ValueError(f"{name} unpacks to more than {text(MOST_TEXT)}")
    return found


def _document(words: str, name: str) -> Seen | None:
    """A profiler's trace or memory timeline, or one of memlab watch; None: it is none of them."""
    import json

    from . import profiles

    head = words[:4096].lower()
    if "<html" in head and "data:image/png" in head:
        raise ValueError(f"{name}: {profiles.PICTURE}")
    if '"memlab_timeline"' in head:
        return _timeline(words, name)
    if words.lstrip()[:1] == "{":
        if '"traceEvents"' not in words:
            return None
        if (found := profiles.trace(words)) is None:
            raise ValueError(f"{name}: a trace without memory events; profile_memory=True has them")
        return found
    try:
        return profiles.timeline(json.loads(words))
    except (ValueError, RecursionError):
        return None


def _timeline(words: str, name: str) -> Seen:
    import warnings

    from .timelines import timeline_of

    with warnings.catch_warnings(record=True) as said:  # that the file is cut off
        warnings.simplefilter("always")
        found: dict[str, Any] = timeline_of(words, name)
    if not found["peak_bytes"]:
        raise ValueError(f"{name}: the run ended before the first look, so nothing was seen")
    command = printable(" ".join(found["command"]))
    words = f"{command}: {len(found['samples']):,} samples"
    more = ("it counts the whole card, other processes too",)
    card = found["source"] == "device" and found.get("device_counts") == "card"
    told = (words, *(str(w.message) for w in said), *(more if card else ()))
    return Seen(found["peak_bytes"], found["source"], told, "a timeline of memlab watch")


def _snapshot(path: str) -> Seen:
    from .snapshots import read_snapshot

    return _told(read_snapshot(path))


def _told(found: Any) -> Seen:
    """What a snapshot says, with the lines that hold its peak."""
    lines = [f"{text(place.bytes):>10}   {printable(place.where)}" for place in found.at_peak[:5]]
    words = ("the snapshot's peak, by line", *lines)
    kind = "a memory snapshot of PyTorch"
    return Seen(found.peak, "allocated", words, kind, device=found.device)
