"""The files that the package brings along: an installation without them says so by name."""

from __future__ import annotations

from pathlib import Path


def data_files(folder: Path) -> list[Path]:
    """The JSON files of a folder of the package, by name.

    Raises      FileNotFoundError where there is none: no answer is better than an empty one
    """
    found = sorted(folder.glob("*.json"))
    if not found:
        named = f"{folder.parent.parent.name}/{folder.parent.name}/{folder.name}"
        raise FileNotFoundError(f"this installation lacks {named}/*.json: install memlab again")
    return found
