"""What people ask after the verdict: how large, how long, for how many, and on which GPUs.

The searches are those of `memlab fit`. The page's engine works in the page's own thread, so that it
answers in turns: what a turn has found is kept for the next one, until another question is asked.
"""

from __future__ import annotations

import json

from ..base.message import Message, dumps
from ..explain.largest import largest, least_tokens, sized
from ..families import has_config
from ..run import Run
from ..units import MOST, text
from ..verdict import BAND, TIGHT, percent, room_for
from . import asked_words as say
from .answer import REST, check
from .asked_parts import BATCH, GPUS, SERVED, TOKENS, TRAINED, fitting, gpus, sets
from .asked_serving import served
from .command import command
from .controls import OTHER_MODEL, checked
from .question import card_of, model_of, name_of, recipe_of, run_of
from .serve_command import card as card_words
from .serve_controls import SERVE
from .several import cards, per_gpu
from .supported import Unknown, why
from .table_peak import Highest, Missing
from .turns import Known, Later

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

    from ..model import Model
    from .question import State
    from .table_peak import Lookup

ROWS = 64  # of fewer the page's tables have no step

_known = Known()


def asked(words: str, lookup: Lookup, what: str) -> str:
    """The answer to one of these questions as JSON, or {"more": true}: ask again.

    words, lookup   as memlab.page.answer.answer has them
    """
    _known.begin((words, what))
    try:
        return dumps(_answered(json.loads(words), lookup, what, _known))
    except Later:
        return dumps({"more": True})
    except Missing as error:
        return dumps({"needs": str(error)})
    except ImportError:
        return dumps({"needs": REST})
    except (ValueError, TypeError) as error:
        return dumps({"error": why(error)})


def answered(given: Any, lookup: Lookup, what: str) -> dict[str, Any]:
    """The same at once, in Python's own values.

    Raises      ValueError, TypeError for a state that cannot be; Missing
    """
    return _answered(given, lookup, what, Known(turns=False))


def _answered(given: Any, lookup: Lookup, what: str, known: Known) -> dict[str, Any]:
    state = checked(given)
    serves = state["use"] == SERVE
    if what not in [name for name, _ in (SERVED if serves else TRAINED)]:
        raise ValueError(f"what={what!r} is none of these questions")
    if state["model"] == OTHER_MODEL and not has_config(state["config"]["model_type"]):
        return {"line": Message(say.NO_TYPE, family=state["config"]["model_type"])}
    if serves:
        return served(state, what, known)
    try:
        return _trained(state, lookup, what, known)
    except Unknown as reason:
        return {"line": Message(say.NO_PEAK, why=why(reason))}


def _trained(state: State, lookup: Lookup, what: str, known: Known) -> dict[str, Any]:
    model, recipe, run = model_of(state), recipe_of(state), run_of(state)
    check(model, run, name_of(state, model))

    def held(run: Run) -> int:
        return int(known.of((run.batch, run.tokens), lambda: _peak(model, recipe, run, lookup)))

    if what == GPUS:
        total = held(run)
        return gpus(state, run.devices.ranks, lambda card: fitting(room_for(run, card), total))
    room = room_for(run, card_of(state))
    if what == BATCH:
        least, most = -(-ROWS // (run.tokens or 1)), MOST
    else:
        least, most = max(least_tokens(run), -(-ROWS // run.batch)), model.positions
    value = largest(lambda n: held(sized(run, what, n)), room.surely, least, most)
    size = held(sized(run, what, value or least))
    gpus_there = run.devices.ranks
    sizes = {"card": cards(room.name, gpus_there), "limit": text(room.at_most)}
    count = f"{value or least:,}"
    sizes["count"] = per_gpu(count, gpus_there) if what == BATCH else count
    found: dict[str, Any] = {"value": value, "sets": sets(what, value), "then": ""}
    if value:
        form = say.BATCH_FOUND if what == BATCH else say.SEQUENCE_FOUND
        found["line"] = Message(form, size=per_gpu(text(size), gpus_there), **sizes)
        if value == most:
            found["then"] = say.BOUND_ENDS if what == BATCH else say.POSITIONS_END
    elif room.verdict(size).word == TIGHT:
        found["line"] = Message(say.TIGHT_BATCH if what == BATCH else say.TIGHT_SEQUENCE, **sizes)
    else:
        form = say.NO_BATCH if what == BATCH else say.NO_SEQUENCE
        found["line"] = Message(form, size=text(size - room.at_most), **sizes)
    found["replayed"] = Message(say.REPLAYED, percent=percent(BAND))
    found["command"] = command_of(state, what)
    return found


def _peak(model: Model, recipe: Any, run: Run, lookup: Lookup) -> int:
    return Highest(model, recipe, run, lookup).total


def command_of(state: State, what: str) -> str:
    """`memlab fit` with the flags of this state, less the one that it looks for."""
    words = command(state).split(" ")[2:]
    if f"--{what}" in words:
        at = words.index(f"--{what}")
        words = words[:at] + words[at + 2 :]
    if what == TOKENS and "--batch" not in words:
        words += ["--batch", str(state.get("batch", Run().batch))]
    return " ".join(["memlab fit", words[0], "--on", card_words(state)] + words[1:])
