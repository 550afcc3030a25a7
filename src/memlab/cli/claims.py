"""`memlab claims`: what a field note claims, and what became of it."""

from __future__ import annotations

import argparse

from ..claims import VERDICTS, Claims, notes, read

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any


def add_parser(commands: Any) -> None:
    """Hook the command into `memlab`."""
    words = "What a field note claims about memory, with a verdict for each claim."
    parser = commands.add_parser("claims", help=words, description=words)
    parser.set_defaults(run=run)
    parser.add_argument("note", nargs="?", metavar="NOTE", help="default: list the notes")
    parser.add_argument("--verdict", choices=VERDICTS, metavar="VERDICT", help=", ".join(VERDICTS))
    parser.add_argument("--json", action="store_true", help="print JSON for programs")


def run(options: argparse.Namespace) -> str:
    """What the command prints.

    Raises      ValueError for an unknown note
    """
    if options.note is None:
        return "\n".join(f"{note}   {_counted(Claims(read(note)))}" for note in notes())
    found = Claims(read(options.note), options.verdict)
    if options.json:
        import json

        return json.dumps([vars(c) for c in found.claims], ensure_ascii=False, indent=1)
    return f"{found}\n\n{_counted(found)}"


def _counted(found: Claims) -> str:
    parts = ", ".join(f"{count} {verdict}" for verdict, count in found.counts().items())
    return f"{len(found.claims)} claims: {parts}" if parts else "no claim"
