"""What moved: the packages that are installed here in another version than constraints.txt pins.

    python tools/moved.py      a table in Markdown, for the summary of the weekly run

A build of a version (+cpu) is that version; what is not installed, or not pinned, is not compared.
"""

import re
from importlib.metadata import distributions
from pathlib import Path

PINS = Path(__file__).resolve().parent.parent / "constraints.txt"


def normal(name):
    """A package's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def moved(pins, installed):
    """(name, pinned version, installed version) of each that differs, by name."""
    pinned = dict(line.split("==") for line in pins.splitlines() if line[:1] not in ("#", ""))
    there = {normal(name): version.partition("+")[0] for name, version in installed}
    found = [(name, version, there.get(normal(name), version)) for name, version in pinned.items()]
    return [each for each in found if each[1] != each[2]]


def table(rows):
    head = ["## Newer than the pins", "", "| package | pinned | newest |", "|---|---|---|"]
    body = [f"| {' | '.join(row)} |" for row in rows] or ["| nothing moved | | |"]
    return "\n".join([*head, *body])


if __name__ == "__main__":
    here = [(each.metadata["Name"], each.version) for each in distributions()]
    print(table(moved(PINS.read_text(encoding="utf-8"), here)))
