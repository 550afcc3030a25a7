"""What the questions after the verdict have in common: their names, and the table of GPUs."""

from __future__ import annotations

from ..base.message import Message
from ..devices import devices
from ..engines.apple import macs
from ..units import text
from . import asked_words as say
from .answer_rows import SIGNS
from .controls import NUMBERS
from .serve_controls import LLAMA_CPP, NO_ENGINE, SERVE

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ..devices import Device
    from ..verdict import Room
    from .question import State

BATCH, TOKENS, USERS, CONTEXT, GPUS = "batch", "tokens", "users", "context", "gpus"
# What each use is asked, in order, with its button.
TRAINED = ((BATCH, say.LARGEST_BATCH), (TOKENS, say.LONGEST_SEQUENCE), (GPUS, say.WHICH_GPUS))
SERVED = ((USERS, say.MOST_USERS), (CONTEXT, say.LONGEST_CONTEXT), (GPUS, say.WHICH_GPUS))
NAMES = {"yes": say.FITS, "tight": say.TIGHT, "no": say.DOES_NOT_FIT}


def fitting(room: Room, total: int) -> tuple[str, str, str]:
    word, left = room.verdict(total).word, room.at_most - total
    sign = SIGNS[word]
    return sign, NAMES[sign], Message(say.LEFT if left >= 0 else say.TOO_MUCH, size=text(abs(left)))


def gpus(
    state: State, count: int, judged: Callable[[Device], tuple[str, str, str]]
) -> dict[str, Any]:
    """Every GPU, from the smallest, or so many of each: its verdict, and what is left."""
    rows, counts = [], {"yes": 0, "tight": 0, "no": 0}
    slots = state["use"] == SERVE and state["engine"] == LLAMA_CPP
    for card in sorted(
        devices() + (macs() if slots else ()), key=lambda each: (each.limit, each.name)
    ):
        sign, verdict, margin = judged(card)
        counts[sign] += 1
        here = card.name == state["card"]
        rows.append([card.name, text(card.limit), sign, verdict, margin, here])
    form = say.GPUS_FOUND
    if state["use"] == SERVE and state["engine"] != NO_ENGINE:
        form = say.GPUS_HOLD_ONE if state["users"] == 1 else say.GPUS_SERVE
    sizes = {"fits": counts["yes"], "tight": counts["tight"], "all": len(rows)}
    then = "" if count == 1 else Message(say.EACH_LINE, count=f"{count:,}")
    return {"line": Message(form, **sizes), "then": then, "rows": rows}


def sets(what: str, value: int) -> dict[str, int]:
    """What a button sets: nothing where the control has no such value."""
    least, most = [(least, most) for name, _, least, most in NUMBERS if name == what][0]
    return {what: value} if least <= value <= most else {}
