"""`memlab claims`: what a field note claims, and what became of it."""

from __future__ import annotations

import argparse

from ..files.claims import VERDICTS, Claim, Claims, notes, read
from .document import document

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A note, or a verdict."""
    parser.add_argument("note", nargs="?", metavar="NOTE", help="default: all of them, counted")
    parser.add_argument("--verdict", choices=VERDICTS, metavar="VERDICT", help=", ".join(VERDICTS))
    parser.add_argument("--json", action="store_true", help="print JSON for programs")


def run(options: argparse.Namespace) -> str:
    """What the command prints.

    Raises      ValueError for an unknown note
    """
    asked = notes() if options.note is None else [options.note]
    found = {note: Claims(read(note), options.verdict) for note in asked}
    if options.json:
        rows = [_plain(note, one) for note, claims in found.items() for one in claims.claims]
        return document("claims", claims=rows)
    if options.note is None and options.verdict is None:
        return "\n".join(f"{note}   {_counted(claims)}" for note, claims in found.items())
    if options.note is not None:
        return f"{found[options.note]}\n\n{_counted(found[options.note])}"
    every = Claims([one for claims in found.values() for one in claims.claims])
    return f"{every}\n\n{_counted(every)}"


def _plain(note: str, one: Claim) -> dict[str, Any]:
    return {"note": note} | {name: getattr(one, name) for name in Claim.__annotations__}


def _counted(found: Claims) -> str:
    if not found.claims:
        return "no claim"
    by = ", ".join(f"{count} by {kind}" for kind, count in found.kinds().items())
    sides = {"": found.of_the_note(), " added while auditing": found.added()}
    each = [f"{_many(side)}{what}: {_fates(side)}" for what, side in sides.items() if side.claims]
    return f"{'; '.join(each)}; judged {by}"


def _many(found: Claims) -> str:
    return "1 claim" if len(found.claims) == 1 else f"{len(found.claims)} claims"


def _fates(found: Claims) -> str:
    return ", ".join(f"{count} {verdict}" for verdict, count in found.counts().items())
