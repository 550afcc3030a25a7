"""Run the suite and write its record: whole files only, even when somebody stops it half-way."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from ..files.records import Record, Row, as_json
from .case import Case
from .provenance import provenance
from .suite import rows


def recorded(
    chosen: Sequence[Case],
    device: str,
    command: str,
    *,
    out: Path | None = None,
    tell: Callable[[str], None] = lambda name: None,
) -> Record:
    """The record of these cases on this device.

    out         the file; until the last case there is one beside it, "….unfinished", with all rows
                so far, so that an earlier record stays until there is a whole new one
    Raises      OSError where `out` cannot be written, before anything is measured
    """
    words, done = provenance(device), list[Row]()

    def now(complete: bool) -> Record:
        return Record(**words, command=command, complete=complete, rows=tuple(done))

    unfinished = None if out is None else out.with_name(f"{out.name}.unfinished")
    if unfinished is not None:
        write(now(False), unfinished)
    for more in rows(chosen, device, tell):
        done += more
        if unfinished is not None:
            write(now(False), unfinished)
    found = now(True)
    if out is not None and unfinished is not None:
        write(found, out)
        unfinished.unlink()
    return found


def write(one: Record, path: Path) -> None:
    """Put a whole file in the place of another: a reader never finds half of one."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with open(beside, "w", encoding="utf-8") as file:
            file.write(as_json(one))
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)
