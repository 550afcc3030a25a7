"""A state that asks about serving: what an engine, or transformers alone, needs of a card."""

from __future__ import annotations

from ..base.message import Message
from ..engines.quantized import PUBLISHED as IN_FEWER_BITS
from ..engines.quantized import Quantized, checkpoint
from ..families import has_config
from ..formats import storage
from ..model import Model
from ..recipe import Recipe
from ..run import Run
from ..units import MiB, text
from ..verdict import room_on
from . import serve_words as told
from . import words as say
from .answer_rows import begun, summed
from .config_words import ENGINE_OF_WHOLE
from .controls import OTHER_MODEL
from .pasted import WHOLE, WITHOUT
from .question import card_of, model_of, name_of
from .sentences import beside, cache_of, known, of_config, pictured, total_of
from .serve_command import (
    capitals,
    command,
    computing,
    format_of,
    named,
    packs,
    script,
)
from .serve_controls import NF4, NO_ENGINE, PLAIN, PUBLISHED
from .serve_engine import conversations, gpus_of, packing, pool_of
from .several import cards, one_of, per_gpu
from .types import TypedModel

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

    from ..verdict import Room
    from .question import State
    from .table_peak import Lookup

MOST_CARDS = 8  # of one machine; more of them are no change that a page advises
FULL = 95  # percent of a card: more leaves too little for the context


def served(state: State, given: State, lookup: Lookup, advise: bool = True) -> dict[str, Any]:
    """What the page shows for a checked state; given is the same before it was checked.

    Raises      ValueError for what no engine does, or memlab does not describe; Missing
    """
    config = state["config"] if state["model"] == OTHER_MODEL else {}
    if config and not has_config(config["model_type"]):
        return of_type(state, lookup)
    model = asked_model(state)
    room = room_on(card_of(state), threads=1)
    found = begun(state, room, name_of(state, model), model.parameter_count, gpus_of(state))
    found["without"] = config.get(WITHOUT, "")
    if found["without"] and state["engine"] != NO_ENGINE:
        sizes = {"family": config[WHOLE], "without": found["without"]}
        raise ValueError(Message(ENGINE_OF_WHOLE, engine=named(state["engine"]), **sizes))
    if state["engine"] == NO_ENGINE:
        run = Run(batch=state["users"], tokens=state["context"])
        cache = cache_of(model, run, computing(state))
        if not cache:
            raise ValueError(told.NO_CACHE_HERE)
        weights = checkpoint(model, packing(state, model), computing(state))
        alone(found, state, room, weights, cache)
        _packed(found, packing(state, model))
    else:
        of_engine(found, state, room, model, advise)
        if state["model"] in IN_FEWER_BITS and not packs(state) and not state["loaded"]:
            sizes = {"model": found["name"], "dtype": state["dtype"]}
            sizes["format"] = capitals(IN_FEWER_BITS[state["model"]])
            found["divides"] = Message(told.PUBLISHED, **sizes)
    if config:
        found["leaves_out"] += of_config(config, given["config"])
    return found


def asked_model(state: State) -> Model:
    """The model of a state.

    Raises      ValueError for more tokens than it has positions
    """
    model, tokens = model_of(state), state["context"]
    if tokens > model.positions and (model.learned_positions or state["engine"] != NO_ENGINE):
        sizes = {"tokens": f"{tokens:,}", "positions": f"{model.positions:,}"}
        raise ValueError(Message(say.POSITIONS, model=name_of(state, model), **sizes))
    return model


def of_type(state: State, lookup: Lookup) -> dict[str, Any]:
    """The same for a model of a type that memlab does not describe: weights and cache alone."""
    model = TypedModel(state["config"], lookup)
    if state["engine"] != NO_ENGINE:
        engine = named(state["engine"])
        raise ValueError(Message(told.ENGINE_OF_TYPE, engine=engine, family=model.family))
    run = Run(batch=state["users"], tokens=state["context"])
    cache = model.cache(run, storage(1, computing(state)))
    if not cache:
        raise ValueError(told.NO_CACHE_HERE)
    if state["dtype"] not in PLAIN and state["dtype"] not in (NF4, PUBLISHED):
        sizes = {"format": capitals(state["dtype"]), "family": model.family}
        raise ValueError(Message(told.PACKED_OF_TYPE, **sizes))
    room = room_on(card_of(state), threads=1)
    found = begun(state, room, model.name, model.parameter_count)
    found["without"] = model.without
    alone(found, state, room, model.at_rest(recipe_of(state), Run())["weights"][0], cache)
    found["leaves_out"] += model.left_out(run, room)[3:]
    return found


def alone(found: dict[str, Any], state: State, room: Room, weights: int, cache: int) -> None:
    """Put in what transformers keeps between two tokens: the weights, and the cache."""
    each = cache // state["users"]
    rows = {"weights": (weights, told.WEIGHTS_KEPT), "KV cache": (cache, told.CACHE_KEPT)}
    summed(found, rows, room)
    left = max(0, room.surely - weights)
    shown(found, state, left // each, left // each * state["context"], left)
    found["verdict"] = known(found)
    found["scale"] = Message(say.SCALE, limit=found["limit_text"], card=found["card"])
    found["leaves_out"] = [beside(room), told.ONLY_IN_A_CALL]


def of_engine(found: dict[str, Any], state: State, card: Room, model: Model, advise: bool) -> None:
    """Put in what an engine takes when it starts, and how many conversations its pool holds."""
    there = pool_of(state, model)
    engine, figures = named(state["engine"]), {row.term: row.derived for row in there.ledger.rows}
    room = conversations(there)
    needed = state["users"] * there.request * there.block_bytes
    rows: dict[str, Any] = {"weights": (figures["weights"] or 0, told.WEIGHTS_KEPT)}
    if figures.get("activations"):
        rows["activations"] = (figures["activations"], told.FIRST_STEP)
    if figures.get("other"):
        rows["other"] = (figures["other"], told.OUTSIDE)
    rows["KV cache"] = (needed, Message(told.BLOCKS_KEPT, tokens=there.block))
    taken = sum([rows[name][0] for name in rows]) - needed
    found["limit"] = taken + there.available  # the engine's share
    found["limit_text"] = text(max(0, found["limit"]))
    summed(found, rows, card)
    found["fits"] = state["users"] <= room  # the engine has its own share, and keeps to it
    found["state"] = "yes" if found["fits"] else "no"
    shown(found, state, room, there.tokens, max(0, there.available))
    sizes = {
        "card": cards(found["card"], found["gpus"]),
        "users": f"{state['users']:,}",
        "count": f"{room:,}",
    }
    sizes.update({"each": f"{state['context']:,}", "total": total_of(found)})
    sizes.update({"limit": found["limit_text"], "engine": engine})
    if not there.starts:
        sizes["dtype"] = text(state["loaded"] * MiB) if state["loaded"] else format_of(state)
        left = per_gpu(text(max(0, there.available)), found["gpus"])
        found["verdict"] = Message(told.STARTS_NOT, size=left, **sizes)
    else:
        fitting = told.SERVES_ONE if state["users"] == 1 else told.SERVES
        found["verdict"] = Message(fitting if found["fits"] else told.SERVES_SOME, **sizes)
    found["scale"] = Message(
        told.SHARE, limit=found["limit_text"], card=found["card"], engine=engine
    )
    _packed(found, there.engine.loads(model))
    found["leaves_out"] = [told.BEFORE_THE_POOL]
    if state["engine"] == "vllm":
        found["leaves_out"].append(Message(told.POSTED_OUTSIDE, size=text(figures["other"] or 0)))
    if there.engine.seqs is not None and state["users"] > there.engine.seqs:
        found["leaves_out"].append(Message(told.SEQUENCES, count=f"{there.engine.seqs:,}"))
    if advise and not found["fits"]:
        advised(found, state, model)


def shown(found: dict[str, Any], state: State, count: int, tokens: int, left: int) -> None:
    """Put in the sentences that both kinds have, and the lines that ask the package."""
    sizes = {"model": found["name"], "users": f"{state['users']:,}"}
    sizes.update({"each": f"{state['context']:,}", "engine": named(state["engine"])})
    form = told.HEADING_OF_ONE if state["users"] == 1 else told.HEADING_SERVED
    heading = Message(form, dtype=format_of(state), **sizes)
    found["heading"] = one_of(heading, found["gpus"])
    room = (told.ROOM_FOR_NONE, told.ROOM_FOR_ONE, told.ROOM)[min(count, 2)]
    found["serving"] = Message(
        room,
        size=per_gpu(text(left), found["gpus"]),
        tokens=f"{tokens:,}",
        count=f"{count:,}",
        each=sizes["each"],
    )
    found["picture"] = pictured(found)
    found["heights"], found["advice"], found["steps"] = "", "", []
    found["peak"] = False
    found["command"], found["script"] = command(state), script(state)


def advised(found: dict[str, Any], state: State, model: Model) -> None:
    """Put in the changes each of which alone makes room, with its flag."""
    sglang = state["engine"] == "sglang"
    tries: list[Any] = []
    if state["kv"] == "auto":
        format = "fp8_e4m3" if sglang else "fp8"
        tries.append(({"kv": "fp8"}, told.IN_FP8, f"--kv-cache-dtype {format}"))
    if state["dtype"] in (PUBLISHED, "bf16", "fp16") and not packs(state) and not state["loaded"]:
        tries.append(({"dtype": "fp8"}, told.WEIGHTS_IN_FP8, "--quantization fp8"))
    if state["share"] < FULL:
        flag = "--mem-fraction-static" if sglang else "--gpu-memory-utilization"
        tries.append(({"share": FULL}, Message(told.MORE_SHARE, share=FULL), f"{flag} 0.{FULL}"))
    cards = 2 * state["cards"]
    while cards <= MOST_CARDS and not state["loaded"]:
        flag = "--tp" if sglang else "--tensor-parallel-size"
        tries.append(({"cards": cards}, Message(told.MORE_CARDS, cards=cards), f"{flag} {cards}"))
        cards *= 2
    for sets, name, flag in tries:
        tried = dict(state)
        tried.update(sets)
        try:
            there = pool_of(tried, model)
        except ValueError:
            continue
        room = conversations(there)
        if room < state["users"]:
            continue
        found["steps"].append(Message(told.MAKES_ROOM, change=name, count=f"{room:,}"))
        found["sets"].append(sets)
        found["flags"].append(flag)
        if "cards" in sets:
            break
    found["advice"] = told.EACH_MAKES_ROOM if found["steps"] else told.NO_ROOM


def recipe_of(state: State) -> Recipe:
    """The weights alone, in the format of a state; NF4 is that of linear layers but the head."""
    if state["dtype"] == NF4:
        return Recipe(weights=NF4, other="bf16", head="bf16", gradients=None)
    return Recipe(weights=computing(state), gradients=None)


def _packed(found: dict[str, Any], how: Quantized | None) -> None:
    """Say of the weights how they are packed."""
    if how is not None:
        row = next(row for row in found["rows"] if row["term"] == "weights")
        row["formula"] = Message(told.WEIGHTS_PACKED, format=capitals(how.format))
