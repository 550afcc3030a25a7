"""What a program that opted in says was alive: files in a folder whose name it is given.

The program's side is `memlab.measure.announce`: one line of it, and when it is asked to end
(SIGTERM), it writes what tensors it holds before it does.
"""

from __future__ import annotations

import json
from pathlib import Path

from ..units import text

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

FOLDER = "MEMLAB_WATCH"  # the environment variable that names the folder
MOST = 4 * 2**20  # bytes of a file: a table is small


def said(folder: str) -> list[dict[str, Any]]:
    """The tables that processes of the program have written, in the order of their numbers.

    Leaves out  whatever is no such table: the program may write there what it likes
    """
    found = []
    for file in sorted(Path(folder).glob("*.json")):
        try:
            if file.stat().st_size <= MOST:
                table = json.loads(file.read_text(encoding="utf-8"))
                as_lines(table)  # whether it has all that is needed
                found.append(table)
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            continue
    return found


def as_lines(table: dict[str, Any]) -> list[str]:
    """A table as a person reads it."""
    total = sum(table["alive"].values())
    lines = [f"alive in process {table['pid']} ({table['found_by']}): {text(total)} of tensors"]
    for category, size in sorted(table["alive"].items(), key=lambda pair: -pair[1]):
        if size:
            lines.append(f"  {category:<12} {text(size):>10}")
    for count, size, category, what in table["largest"][:5]:
        lines.append(f"  {count:>6} × {text(size):>10}   {category}: {what}")
    return lines
