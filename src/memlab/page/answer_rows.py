"""The figures that every answer has: the card's, and the sum of what is asked of it."""

from __future__ import annotations

from ..units import text
from ..verdict import DOES_NOT_FIT, FITS, TIGHT
from .command import command, script
from .peak import EVERY
from .table_peak import BUCKETS

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

    from ..verdict import Room
    from .question import State
    from .table_peak import Rows

ORDER: tuple[str, ...] = ("weights", "reference", "master", "gradients", "accumulator", "optimizer")
ORDER += (BUCKETS, "pipeline buffers") + EVERY[1:]
SIGNS = {FITS: "yes", TIGHT: "tight", DOES_NOT_FIT: "no"}  # how the page marks a verdict


def begun(state: State, room: Room, name: str, parameters: int, gpus: int = 1) -> dict[str, Any]:
    """An answer to a state, still without figures; gpus: how many share the work."""
    return {
        "name": name,
        "parameters": parameters,
        "card": room.name,
        "usable": room.there,
        "limit": room.at_most,
        "gpus": gpus,
        "limit_text": text(room.at_most),
        "peak": True,
        "moment": "",
        "hills": [],
        "stacks": {},
        "changes": [],
        "sets": [],
        "flags": [],
        "over": [],
        "ways": [],
        "why": "",
        "divides": "",
        "serving": "",
        "command": command(state),
        "script": script(state),
    }


def summed(found: dict[str, Any], rows: Rows, room: Room) -> None:
    """Put the rows into an answer, their sum, and the verdict.

    Where only what stays is known, that it fits is no verdict: nothing marks it.
    """
    limit, total = found["limit"], sum([rows[name][0] for name in rows])
    found["total"], found["total_text"] = total, text(total)
    found["rows"] = [
        {"term": name, "bytes": size, "text": text(size), "formula": formula}
        for name, (size, formula) in [(name, rows[name]) for name in ORDER if name in rows]
    ]
    word = room.verdict(total).word
    found["most"], found["state"] = text(room.most(total) - room.beside), SIGNS[word]
    found["fits"] = word == FITS
    if found["why"] and word != DOES_NOT_FIT:
        found["fits"], found["state"] = True, ""
    found["left"] = text(abs(limit - total))
