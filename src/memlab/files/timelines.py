"""The record of a watched program: one JSON object, readable at any moment of the run.

memlab_timeline   1, the version of this format
command           the program and its arguments
started           when, as ISO 8601
source            "device" or "process": which of the two the limits and the peak are about
device            the card's name, or null
total_bytes       the capacity of that source: the card's memory, or the machine's
samples           [seconds, bytes of all processes, bytes on the device or null]
events            {"at": seconds, "kind": "soft-limit", "hard-limit", "signal" or "exit", ...}
peak_bytes        the most that was seen of the source; of processes at least what the system
                  counted of the largest one, whether a look fell on it or not
exit              the exit code (128 + n after signal n); null while it runs, or if the watcher
                  itself was cut off
process_counts    "PSS" (shared pages by their share) or "RSS"; may be missing
device_counts     "program", or "card": everything on the card; null or missing without one
"""

from __future__ import annotations

import warnings
from datetime import datetime
from math import isfinite
from pathlib import Path

from ..base.untrusted import brief, decoded, parsed, read_bytes

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

VERSION = 1
MOST = 2**28  # bytes of a file: a week of ten looks a second
SOURCES = ("device", "process")
KINDS = ("soft-limit", "hard-limit", "signal", "exit")
KEYS = ("memlab_timeline command started source device total_bytes").split()
KEYS += ("samples events peak_bytes exit").split()
COUNTS = {"process_counts": ("PSS", "RSS"), "device_counts": ("program", "card", None)}


def read_timeline(path: str | Path) -> dict[str, Any]:
    """The record as a dictionary, every value of it checked.

    Shapes      the keys above; those that may be missing are there only if the file has them
    Unit        bytes, and seconds since the program started
    Cut off     the writer keeps the file whole, but a machine that loses power, or a copy, may cut
                it: then every complete sample and event is returned, with a warning that says so
    Raises      ValueError, with the file's name and what is wrong, for anything else
    """
    try:
        data = read_bytes(path, MOST)
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from error
    try:
        words = decoded(data)
    except ValueError as error:
        raise ValueError(f"{path} is not a timeline of memlab watch: {error}") from error
    return timeline_of(words, path)


def timeline_of(words: str, path: str | Path) -> dict[str, Any]:
    """The same of a text that was read already; the name is for what is wrong with it."""
    cut = False
    try:
        document = parsed(words)
    except ValueError:
        cut, document = True, _recovered(words)
    wrong = "not JSON" if cut and document is None else _wrong(document)
    if wrong:
        raise ValueError(f"{path} is not a timeline of memlab watch: {wrong}")
    if cut:
        count = len(document["samples"])
        warnings.warn(f"{path} is cut off: {count} complete samples recovered", stacklevel=3)
    return document


def peak_of(source: str, samples: list) -> int:
    """The most bytes that any sample has of the source; 0 where there is no sample."""
    place = 2 if source == "device" else 1
    return max((sample[place] or 0 for sample in samples), default=0)


def _recovered(words: str) -> dict[str, Any] | None:
    """What a file that was cut off still holds; None if not even its first line is there.

    The writer gives every sample and every event a line, in this order.
    """
    lines = words.rstrip().splitlines()
    try:
        document = parsed(lines[0] + "]}")
        document["samples"], rest = _entries(lines[1:])
    except (ValueError, IndexError, TypeError, KeyError):
        return None
    document["events"] = _entries(rest[1:])[0] if rest else []
    try:
        document["peak_bytes"] = peak_of(document.get("source"), document["samples"])
    except (TypeError, IndexError, KeyError):
        document["peak_bytes"] = 0  # samples that are none: the check says so
    return document | {"exit": None}


def _entries(lines: list[str]) -> tuple[list, list[str]]:
    """The values of the lines up to one that closes the list or is not whole, and the rest."""
    found: list[Any] = []
    for place, line in enumerate(lines):
        if line.startswith("]"):
            return found, lines[place + 1 :]
        try:
            found.append(parsed(line.removesuffix(",")))
        except ValueError:
            break
    return found, []


def _wrong(document: Any) -> str | None:
    """The first thing that is not as it should be, in words; None if nothing."""
    if not isinstance(document, dict):
        return f"a JSON {type(document).__name__}, not an object"
    if "memlab_timeline" not in document:
        return "no memlab_timeline in it"
    if document["memlab_timeline"] != VERSION or document["memlab_timeline"] is True:
        return f"memlab_timeline is {brief(document['memlab_timeline'])}; {VERSION} is known"
    missing = [key for key in KEYS if key not in document]
    if missing:
        return f"no {', '.join(missing)}"
    checks = {
        "command": _is_command(document["command"]),
        "started": _is_moment(document["started"]),
        "source": document["source"] in SOURCES,
        "device": document["device"] is None or isinstance(document["device"], str),
        "total_bytes": _is_bytes(document["total_bytes"]) and document["total_bytes"] > 0,
        "samples": isinstance(document["samples"], list),
        "events": isinstance(document["events"], list),
        "peak_bytes": _is_bytes(document["peak_bytes"]),
        "exit": document["exit"] is None or _is_bytes(document["exit"]),
    }
    checks |= {k: document[k] in known for k, known in COUNTS.items() if k in document}
    for key, right in checks.items():
        if not right:
            return f"{key} is {brief(document[key])}"
    if document["source"] == "device" and document["device"] is None:
        return "source is 'device', and device is null"
    before = 0.0
    for place, sample in enumerate(document["samples"]):
        if not _is_sample(sample) or sample[0] < before:
            return f"sample {place} is {brief(sample)}"
        before = sample[0]
    for place, event in enumerate(document["events"]):
        if not _is_event(event):
            return f"event {place} is {brief(event)}"
    most = peak_of(document["source"], document["samples"])
    if document["peak_bytes"] < most:
        return f"peak_bytes is {document['peak_bytes']}, and a sample has {most}"
    return None


def _is_bytes(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_seconds(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return 0 <= value < 1e12 and isfinite(value)


def _is_command(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(v, str) for v in value)


def _is_moment(value: Any) -> bool:
    try:
        datetime.fromisoformat(value)
    except (ValueError, TypeError):
        return False
    return True


def _is_sample(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 3
        and _is_seconds(value[0])
        and _is_bytes(value[1])
        and (value[2] is None or _is_bytes(value[2]))
    )


def _is_event(value: Any) -> bool:
    return isinstance(value, dict) and _is_seconds(value.get("at")) and value.get("kind") in KINDS
