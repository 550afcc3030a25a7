"""What people ask after the verdict: how large, how long, for how many, and on which GPUs.

The searches are those of `memlab fit`. The page's engine works in the page's own thread, so that it
answers in turns: what a turn has found is kept for the next one, until another question is asked.
"""

from __future__ import annotations

import json

from ..base.frozen import replace
from ..base.message import Message, dumps
from ..devices import devices
from ..engines.pool import Pool, pool
from ..engines.quantized import checkpoint, kernel_on
from ..explain.largest import largest, least_tokens, sized
from ..families import has_config
from ..run import Run
from ..units import MOST, text
from ..verdict import BAND, TIGHT, percent, room_for, room_on
from . import asked_words as say
from .answer import REST, check
from .answer_rows import SIGNS
from .command import command
from .controls import NUMBERS, OTHER_MODEL, checked
from .question import card_of, model_of, name_of, recipe_of, run_of
from .sentences import cache_of
from .serve_answer import conversations, engine_of, packing
from .serve_command import card as card_words
from .serve_command import computing
from .serve_controls import NO_ENGINE, SERVE
from .supported import Unknown, why
from .table_peak import Highest, Missing
from .turns import CHEAP, DEAR, Known, Later

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ..devices import Device
    from ..model import Model
    from ..verdict import Room
    from .question import State
    from .table_peak import Lookup

BATCH, TOKENS, USERS, CONTEXT, GPUS = "batch", "tokens", "users", "context", "gpus"
# What each use is asked, in order, with its button.
TRAINED = ((BATCH, say.LARGEST_BATCH), (TOKENS, say.LONGEST_SEQUENCE), (GPUS, say.WHICH_GPUS))
SERVED = ((USERS, say.MOST_USERS), (CONTEXT, say.LONGEST_CONTEXT), (GPUS, say.WHICH_GPUS))
NAMES = {"yes": say.FITS, "tight": say.TIGHT, "no": say.DOES_NOT_FIT}
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
    serves = state.get("use") == SERVE
    if what not in [name for name, _ in (SERVED if serves else TRAINED)]:
        raise ValueError(f"what={what!r} is none of these questions")
    if state["model"] == OTHER_MODEL and not has_config(state["config"]["model_type"]):
        return {"line": Message(say.NO_TYPE, family=state["config"]["model_type"])}
    if serves:
        return _served(state, what, known)
    try:
        return _trained(state, lookup, what, known)
    except Unknown as reason:
        return {"line": Message(say.NO_PEAK, why=why(reason))}


# -- training ----------------------------------------------------------------------------------


def _trained(state: State, lookup: Lookup, what: str, known: Known) -> dict[str, Any]:
    model, recipe, run = model_of(state), recipe_of(state), run_of(state)
    check(model, run, name_of(state, model))

    def held(run: Run) -> int:
        return int(known.of((run.batch, run.tokens), lambda: _peak(model, recipe, run, lookup)))

    if what == GPUS:
        total = held(run)
        return _gpus(state, lambda card: _fitting(room_for(run, card), total))
    room = room_for(run, card_of(state))
    if what == BATCH:
        least, most = -(-ROWS // (run.tokens or 1)), MOST
    else:
        least, most = max(least_tokens(run), -(-ROWS // run.batch)), model.positions
    value = largest(lambda n: held(sized(run, what, n)), room.surely, least, most)
    size = held(sized(run, what, value or least))
    sizes = {"card": room.name, "count": f"{value or least:,}", "limit": text(room.at_most)}
    found: dict[str, Any] = {"value": value, "sets": _sets(what, value), "then": ""}
    if value:
        form = say.BATCH_FOUND if what == BATCH else say.SEQUENCE_FOUND
        found["line"] = Message(form, size=text(size), **sizes)
        if value == most:
            found["then"] = say.BOUND_ENDS if what == BATCH else say.POSITIONS_END
    elif room.verdict(size).word == TIGHT:
        found["line"] = Message(say.TIGHT_BATCH if what == BATCH else say.TIGHT_SEQUENCE, **sizes)
    else:
        form = say.NO_BATCH if what == BATCH else say.NO_SEQUENCE
        found["line"] = Message(form, size=text(size - room.at_most), **sizes)
    found["replayed"] = Message(say.REPLAYED, percent=percent(BAND))
    found["command"] = fitting(state, what)
    return found


def _peak(model: Model, recipe: Any, run: Run, lookup: Lookup) -> int:
    return Highest(model, recipe, run, lookup).total


def fitting(state: State, what: str) -> str:
    """`memlab fit` with the flags of this state, less the one that it looks for."""
    words = command(state).split(" ")[2:]
    if f"--{what}" in words:
        at = words.index(f"--{what}")
        words = words[:at] + words[at + 2 :]
    if what == TOKENS and "--batch" not in words:
        words += ["--batch", str(state.get("batch", Run().batch))]
    return " ".join(["memlab fit", words[0], "--on", card_words(state)] + words[1:])


# -- serving -----------------------------------------------------------------------------------


def _served(state: State, what: str, known: Known) -> dict[str, Any]:
    model = model_of(state)
    if state["engine"] == NO_ENGINE:
        weights = known.of("weights", lambda: _weights(state, model))

        def held(users: int, tokens: int) -> int:
            run = Run(batch=users, tokens=tokens)
            return int(weights) + cache_of(model, run, computing(state))

        if what == GPUS:
            total = held(state["users"], state["context"])
            return _gpus(state, lambda card: _fitting(room_on(card, threads=1), total))
        limit = room_on(card_of(state), threads=1).surely
        if what == USERS:
            value = largest(lambda n: held(n, state["context"]), limit, 1, MOST)
            return _counted(state, what, value)
        value = largest(lambda n: held(state["users"], n), limit, 2, model.positions)
        return _counted(state, what, value, value == model.positions)

    def made(card: Device, tokens: int) -> Pool:
        """The weights are the same wherever the same kernel multiplies by them."""
        engine = replace(engine_of(state), max_model_len=tokens)
        kernel = "weights", kernel_on(card.name)
        if kernel in known.values and engine.weights is None:
            engine = replace(engine, weights=known.values[kernel])
        cost = DEAR if engine.weights is None else CHEAP
        found: Pool = known.of((card.name, tokens), lambda: pool(model, engine, on=card), cost)
        for row in found.ledger.rows:
            if row.term == "weights":
                known.values[kernel] = row.derived
        return found

    if what == GPUS:
        return _gpus(state, lambda card: _holding(state, made(card, state["context"])))
    card, there = card_of(state), made(card_of(state), state["context"])
    if what == USERS:
        return _counted(state, what, conversations(there))
    free = there.blocks - (there.sequences is not None and there.engine.name == "vllm")
    users = state["users"]
    value = largest(lambda n: users * made(card, n).request, max(0, free), 1, model.positions)
    return _counted(state, what, value, value == model.positions)


def _weights(state: State, model: Model) -> int:
    return checkpoint(model, packing(state, model), computing(state))


def _counted(state: State, what: str, value: int, ended: bool = False) -> dict[str, Any]:
    sizes = {"card": card_of(state).name, "count": f"{value:,}"}
    if what == USERS:
        form, sizes["each"] = say.USERS_FOUND if value else say.NO_USERS, f"{state['context']:,}"
    else:
        form, sizes["users"] = say.CONTEXT_FOUND if value else say.NO_CONTEXT, f"{state['users']:,}"
    found: dict[str, Any] = {"value": value, "sets": _sets(what, value)}
    found["line"], found["then"] = Message(form, **sizes), say.POSITIONS_END if ended else ""
    return found


def _holding(state: State, there: Pool) -> tuple[str, str, str]:
    count = conversations(there)
    if not there.starts:
        return "no", say.DOES_NOT_FIT, say.STARTS_NOT
    room = Message(say.ROOM_FOR, count=f"{count:,}")
    if count >= state["users"]:
        return "yes", say.FITS, room
    return "tight", say.HOLDS_SOME, room


# -- both --------------------------------------------------------------------------------------


def _fitting(room: Room, total: int) -> tuple[str, str, str]:
    word, left = room.verdict(total).word, room.at_most - total
    sign = SIGNS[word]
    return sign, NAMES[sign], Message(say.LEFT if left >= 0 else say.TOO_MUCH, size=text(abs(left)))


def _gpus(state: State, judged: Callable[[Device], tuple[str, str, str]]) -> dict[str, Any]:
    """Every GPU, from the smallest: its verdict, and what is left."""
    rows, counts = [], {"yes": 0, "tight": 0, "no": 0}
    for card in sorted(devices(), key=lambda each: (each.limit, each.name)):
        sign, verdict, margin = judged(card)
        counts[sign] += 1
        here = card.name == state["card"]
        rows.append([card.name, text(card.limit), sign, verdict, margin, here])
    form = (
        say.GPUS_SERVE if state["use"] == SERVE and state["engine"] != NO_ENGINE else say.GPUS_FOUND
    )
    sizes = {"fits": counts["yes"], "tight": counts["tight"], "all": len(rows)}
    return {"line": Message(form, **sizes), "rows": rows}


def _sets(what: str, value: int) -> dict[str, int]:
    """What a button sets: nothing where the control has no such value."""
    least, most = [(least, most) for name, _, least, most in NUMBERS if name == what][0]
    return {what: value} if least <= value <= most else {}
