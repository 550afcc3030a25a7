"""The page's calculator: a state of its controls in, what to show out. CPython and MicroPython."""

from __future__ import annotations

import json

from ..base.message import Listed, Message, dumps
from ..explain.flags import FLAGS, flag
from ..explain.flags import divided as of_cards
from ..families import has_config
from ..model import Model
from ..run import program_defaults
from ..run.loops import LOOPS
from ..units import text
from ..verdict import room_for, room_on
from . import words as say
from .advice import cheapest, divided, instead
from .answer_rows import ORDER as ORDER
from .answer_rows import begun, summed
from .controls import OTHER_MODEL, OWN, checked
from .own_values import own_values
from .pasted import WITHOUT
from .question import card_of, controls_of, model_of, name_of, recipe_name, recipe_of, run_of
from .sentences import left_out, of_config, said
from .serve_controls import LLAMA_CPP, SERVE
from .several import per_gpu
from .supported import Unknown, why
from .table_peak import Highest, Missing, at_rest

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

    from ..explain.changes import Found
    from ..recipe import Recipe
    from ..run import Run
    from .question import State
    from .table_peak import Lookup


REST = "later"  # the modules that few questions need
STEP, CARDS = "step", "cards"  # what the whole package can count: book/calculator/count.mjs


def answer(words: str, lookup: Lookup, advise: bool = True) -> str:
    """What the page shows for a state in JSON, as JSON; whatever is wrong comes back as one line.

    advise      whether to look for changes that help and for what an engine makes of the GPU,
                which takes longer than the answer itself
    Shapes      lookup: (name of a file of moments, kind of step) -> their JSON, "" where there is
                no such kind, "?" where the file has not been fetched
    """
    return dumps(outcome(words, lookup, advise))


def outcome(words: str, lookup: Lookup, advise: bool = True) -> dict[str, Any]:
    """The same in Python's own values, with its messages whole."""
    given = None
    try:
        given = json.loads(words)
        return answered(given, lookup, advise)
    except Missing as error:
        return {"needs": str(error)}
    except ImportError:  # memlab.page.files.LATER: the page's engine gets it when it is needed
        return {"needs": REST}
    except (ValueError, TypeError) as error:
        try:
            from .ways_out import of_refused
        except ImportError:
            return {"needs": REST}
        ways = of_refused(given)
        return {"error": why(error)} | ({"ways": ways} if ways else {})


def answered(
    given: Any, lookup: Lookup, advise: bool = True, top: type[Highest] = Highest
) -> dict[str, Any]:
    """The answer to a state.

    top         who knows the highest moment of a step: tables, or memlab.page.simulated's
                simulation
    Raises      ValueError, TypeError for a state that cannot be; Missing
    """
    state = checked(given)
    if state["use"] == SERVE:
        if state["engine"] == LLAMA_CPP:
            from .serve_llama_cpp import served
        else:
            from .serve_answer import served

        return served(state, given, lookup, advise)
    if state["model"] == OTHER_MODEL and not has_config(state["config"]["model_type"]):
        return of_type(state, lookup)
    model, recipe, run = model_of(state), recipe_of(state), run_of(state)
    name = name_of(state, model)
    check(model, run, name)
    shown = named(name, run)
    room = room_for(run, card_of(state))
    found = begun(state, room, shown, model.parameter_count, run.devices.ranks)
    found["without"] = state.get("config", {}).get(WITHOUT, "")
    try:
        highest = top(model, recipe, run, lookup)
        rows, hills = highest.rows(), highest.hills
        found["moment"] = highest.moment
        found["hills"] = [[name, hills[name], text(hills[name])] for name in sorted(hills)]
        for name in sorted(hills):
            held = highest.stack(name)
            found["stacks"][name] = [[term, held[term]] for term in ORDER if term in held]
    except Unknown as reason:
        from .ways_out import NO_COPY_OF_WEIGHTS, of_step

        rows = at_rest(model, recipe, run)
        found["peak"], found["why"], found["ways"] = False, why(reason), of_step(recipe, run)
        if found["ways"]:
            found["why"] = NO_COPY_OF_WEIGHTS  # and so the package has no step of it either
        else:
            found["counts"] = STEP
    summed(found, rows, room)
    if advise and not found["fits"] and found["peak"]:
        best = cheapest(model, recipe, run, room.surely, lookup, top)
        if not best.steps and best.least <= room.at_most:  # none fits surely: then what may
            best = cheapest(model, recipe, run, room.at_most, lookup, top)
            found["then"] = "tight"
        changed(found, state, best)
        found["never"] = (
            "" if best.steps else Message(say.NEVER, size=per_gpu(text(best.least), found["gpus"]))
        )
        several = room_on(card_of(state), ranks=2).surely
        for over, size in divided(model, recipe, run, several, lookup, top):
            sets: State = {"data": over.devices.data, "zero": 3}
            sets["param_dtype"] = over.devices.policy.param_dtype or OWN
            line, words = of_cards(over), say.OVER
            if over.checkpointing != run.checkpointing:
                sets["checkpoint"], words = over.checkpointing, say.OVER_IN_BLOCKS
                line = f"{flag('block checkpointing', recipe, over)}; {line}"
            told = Message(words, cards=sets["data"], size=text(size))
            found["over"].append([told, line, sets])
        if not found["over"] and top is Highest and divides(recipe, run):
            found["counts"] = CARDS
        if not best.steps and (run.lora is None or not run.lora.base):
            found["over"] += instead(state, model, recipe, run, room.surely, lookup, top)
    found["own"] = own_values(state)
    found["leaves_out"] = left_out(model, recipe, run, found["peak"], room)
    if advise and not found["without"]:  # an engine loads the whole, of which this is a part
        from .engine_sentence import serving

        found["serving"] = serving(model, card_of(state), run.tokens or 0, found["gpus"])
    if state["model"] == OTHER_MODEL:
        found["leaves_out"] += of_config(state["config"], given["config"])
    found.update(said(found, shown, recipe_name(state), run, state.get("zero", 0)))
    took = defaults(recipe, run, state["precision"] != OWN)
    beside = found["divides"]
    found["divides"] = Listed(" ", [beside, took]) if beside and took else beside or took
    return found


def defaults(recipe: Recipe, run: Run, chosen: bool) -> str:
    """What the program took by itself, and that the controls say others."""
    line = program_defaults.told(run, recipe, chosen=chosen)
    return Message(say.OTHERS, defaults=line) if line else ""


def named(model: str, run: Run) -> str:
    """A model's name, the adapters that are trained beside it, and who trains them."""
    if run.lora is not None:
        kind = "QLoRA" if run.lora.base else "LoRA"
        model = Listed(" + ", [model, f"{kind} r={run.lora.rank}"])
    called = LOOPS[run.loop].called
    return Listed(", ", [model, called]) if called else model


def divides(recipe: Recipe, run: Run) -> bool:
    """Whether the package, and no table of the page, knows this step over several cards."""
    alone = run.devices.ranks == run.devices.data and run.devices.zero in (0, 3)
    return alone and run.loop == "trainer" and run.lora is None and not recipe.autocast


def of_type(state: State, lookup: Lookup) -> dict[str, Any]:
    """What stays of a model of a type that memlab does not describe.

    Raises      ValueError, Missing as memlab.page.types.TypedModel
    """
    recipe, run = recipe_of(state), run_of(state)
    from .types import TypedModel  # with what it needs, fetched with the first such config

    model = TypedModel(state["config"], lookup)
    room = room_for(run, card_of(state))
    found = begun(state, room, model.name, model.parameter_count)
    found["peak"], found["why"], found["without"] = False, model.trace, model.without
    summed(found, model.at_rest(recipe, run), room)
    found["own"] = own_values(state)
    found["leaves_out"] = model.left_out(run, room)
    found.update(said(found, model.name, recipe_name(state), run, state.get("zero", 0)))
    return found


def changed(found: dict[str, Any], state: State, best: Found) -> None:
    """Put the changes into an answer, with what each sets, and its line in the reader's library."""
    now = controls_of(recipe_of(state), run_of(state))
    for i in range(len(best.steps)):
        name, cost, size = best.steps[i]
        recipe, run = best.reached[i]
        shown = controls_of(recipe, run)
        told = name if name in FLAGS else Message(say.MICRO_BATCHES, passes=run.micro_batches)
        found["changes"].append([told, cost, text(size)])
        found["sets"].append({key: shown[key] for key in shown if shown[key] != now[key]})
        found["flags"].append(flag(name, recipe, run) or "")


def check(model: Model, run: Run, name: str) -> None:
    """Refuse what no step of this model can be.

    Raises      ValueError
    """
    run.devices.check(model)
    tokens = run.tokens or 0
    if model.learned_positions and tokens > model.positions:
        sizes = {"tokens": f"{tokens:,}", "positions": f"{model.positions:,}"}
        raise ValueError(Message(say.POSITIONS, model=name, **sizes))
