"""What is asked after the verdict on serving: for how many, how long, and on which GPUs."""

from __future__ import annotations

from ..base.frozen import replace
from ..base.message import Message
from ..engines.apple import context_of
from ..engines.llama_cpp import file_bytes, slot_cache
from ..engines.pool import Pool, pool
from ..engines.quantized import checkpoint, kernel_on
from ..explain.largest import largest
from ..run import Run
from ..units import MOST
from ..verdict import room_on
from . import asked_words as say
from .asked_parts import GPUS, USERS, fitting, gpus, sets
from .question import card_of, model_of
from .sentences import cache_of
from .serve_command import computing
from .serve_controls import LLAMA_CPP, NO_ENGINE
from .serve_engine import conversations, engine_of, gpus_of, llama_cpp_of, packing
from .several import cards
from .turns import CHEAP, DEAR, Known

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

    from ..devices import Device
    from ..model import Model
    from .question import State


def served(state: State, what: str, known: Known) -> dict[str, Any]:
    model = model_of(state)
    if state["engine"] == NO_ENGINE:
        weights = known.of("weights", lambda: _weights(state, model))

        def held(users: int, tokens: int) -> int:
            run = Run(batch=users, tokens=tokens)
            return int(weights) + cache_of(model, run, computing(state))

        if what == GPUS:
            total = held(state["users"], state["context"])
            return gpus(state, 1, lambda card: fitting(room_on(card, threads=1), total))
        limit = room_on(card_of(state), threads=1).surely
        if what == USERS:
            value = largest(lambda n: held(n, state["context"]), limit, 1, MOST)
            return _counted(state, what, value)
        value = largest(lambda n: held(state["users"], n), limit, 2, model.positions)
        return _counted(state, what, value, value == model.positions)

    if state["engine"] == LLAMA_CPP:
        return _slots(state, model, what, known)

    def made(card: Device, tokens: int) -> Pool:
        """The weights are the same wherever the same kernel multiplies by them."""
        engine = replace(engine_of(state), max_model_len=tokens)
        kernel = "weights", kernel_on(card.name)
        if kernel in known.values and engine.weights is None:
            engine = replace(engine, weights=known.values[kernel])
        cost = DEAR if engine.weights is None else CHEAP
        found: Pool = known.of((str(card.name), tokens), lambda: pool(model, engine, on=card), cost)
        for row in found.ledger.rows:
            if row.term == "weights":
                known.values[kernel] = row.derived
        return found

    if what == GPUS:
        return gpus(
            state, gpus_of(state), lambda card: _holding(state, made(card, state["context"]))
        )
    card, there = card_of(state), made(card_of(state), state["context"])
    if what == USERS:
        return _counted(state, what, conversations(there))
    free = there.blocks - (there.sequences is not None and there.engine.name == "vllm")
    users = state["users"]
    value = largest(lambda n: users * made(card, n).request, max(0, free), 1, model.positions)
    return _counted(state, what, value, value == model.positions)


def _slots(state: State, model: Model, what: str, known: Known) -> dict[str, Any]:
    """The same for llama.cpp: the weights are one sum, and each slot is another."""
    engine = llama_cpp_of(state)
    weights = known.of("weights", lambda: file_bytes(model, engine.file)[0])

    def slots(card: Device, tokens: int) -> int:
        left = max(0, card.limit - context_of(card) - int(weights))
        return left // slot_cache(model, tokens, engine.cache)

    if what == GPUS:
        return gpus(state, 1, lambda card: _room(state, slots(card, state["context"])))
    card, users = card_of(state), state["users"]
    if what == USERS:
        return _counted(state, what, slots(card, state["context"]))
    limit = max(0, card.limit - context_of(card) - int(weights))
    value = largest(lambda n: users * slot_cache(model, n, engine.cache), limit, 2, model.positions)
    return _counted(state, what, value, value == model.positions)


def _weights(state: State, model: Model) -> int:
    return checkpoint(model, packing(state, model), computing(state))


def _counted(state: State, what: str, value: int, ended: bool = False) -> dict[str, Any]:
    sizes = {"card": cards(card_of(state).name, gpus_of(state)), "count": f"{value:,}"}
    if what == USERS:
        form, sizes["each"] = say.USERS_FOUND if value else say.NO_USERS, f"{state['context']:,}"
    elif state["users"] == 1:
        form = say.CONTEXT_OF_ONE if value else say.NO_CONTEXT_OF_ONE
    else:
        form, sizes["users"] = say.CONTEXT_FOUND if value else say.NO_CONTEXT, f"{state['users']:,}"
    found: dict[str, Any] = {"value": value, "sets": sets(what, value)}
    found["line"], found["then"] = Message(form, **sizes), say.POSITIONS_END if ended else ""
    return found


def _holding(state: State, there: Pool) -> tuple[str, str, str]:
    return _room(state, conversations(there) if there.starts else 0)


def _room(state: State, count: int) -> tuple[str, str, str]:
    if not count:
        return "no", say.DOES_NOT_FIT, say.STARTS_NOT
    room = Message(say.ROOM_FOR, count=f"{count:,}")
    if count >= state["users"]:
        return "yes", say.FITS, room
    return "tight", say.HOLDS_SOME, room
