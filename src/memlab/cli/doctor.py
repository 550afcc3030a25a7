"""`memlab doctor`: whether this machine is ready for the chapters, looked at without a network."""

from __future__ import annotations

import argparse

from ..base.message import Listed
from ..base.messages import say, told
from ..base.table import places
from .doctor_looks import MISSING, OPTIONAL, READY, Look, looks
from .doctor_looks import SENTENCES as FOUND
from .document import document
from .language import add_language, spoken

ABOUT = """\
✓ ready; ○ optional, or better otherwise; ✗ needed and missing. An arrow says
what to do. PyTorch is imported in a process of its own, where it makes one step
of a small model, whose weights have to take what the formula says, to the byte;
the Jupyter kernel of the notebooks is started and asked for memlab.

The exit status is 1 where something that is needed is missing."""
SIGNS = {READY: "✓", OPTIONAL: "○", MISSING: "✗"}
ALL_THERE = "This machine is ready."
LACKING = "Not ready: {1}."
SENTENCES = (ALL_THERE, LACKING, *FOUND)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The form of the answer."""
    parser.epilog = ABOUT
    add_language(parser)
    parser.add_argument("--json", action="store_true", help="print JSON for programs")


def run(options: argparse.Namespace) -> tuple[str, int]:
    """What the command prints, and 1 where something that is needed is missing."""
    found = list(looks())
    lacking = [one.name for one in found if one.state == MISSING]
    if options.json:
        fields = ("name", "state", "found", "do")
        rows = [{field: str(getattr(one, field)) for field in fields} for one in found]
        return document("doctor", ready=not lacking, checks=rows), 1 if lacking else 0
    with spoken(options.lang):
        end = told(LACKING, Listed(", ", lacking)) if lacking else say(ALL_THERE)
        return "\n".join([*_lines(found), "", end]), 1 if lacking else 0


def _lines(found: list[Look]) -> list[str]:
    names = [say(one.name) for one in found]
    width = max(map(places, names))
    made = []
    for name, one in zip(names, found, strict=True):
        made.append(f"{SIGNS[one.state]} {name}{' ' * (width - places(name))}   {say(one.found)}")
        if one.do:
            made.append(f"{' ' * (width + 5)}→ {say(one.do)}")
    return made
