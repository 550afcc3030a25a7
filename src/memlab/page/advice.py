"""The cheapest changes that make a step fit: memlab.explain's search, asked with moments."""

from __future__ import annotations

from ..adapters import Lora
from ..base.message import Message
from ..explain.changes import CHANGES, Found
from ..explain.changes import cheapest as search
from ..explain.flags import LOADED, QUANTIZED, flag
from ..model import Model
from ..recipe import Recipe
from ..run import Run
from ..sharding import FsdpPolicy, Sharding
from ..units import text
from . import words as say
from .adapter_controls import ADAPTERS, LORA, QLORA
from .adapter_tables import EVERY
from .controls import START
from .fsdp_tables import synced
from .question import lora_of, precision_of, recipe_of, run_of
from .several import per_gpu
from .table_peak import Highest

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .question import State
    from .table_peak import Lookup


def cheapest(
    model: Model,
    recipe: Recipe,
    run: Run,
    limit: int,
    lookup: Lookup,
    top: type[Highest] = Highest,
) -> Found:
    """What to change, in order; a change whose step has no moments saves nothing here."""

    def peak(recipe: Recipe, run: Run) -> int:
        return top(model, recipe, run, lookup).total

    return search(peak, recipe, run, limit, CHANGES)


def adapted(
    run: Run, ways: list[tuple[str, Lora]], limit: int, peak: Callable[[Run], int]
) -> list[tuple[str, Run, int]]:
    """Of adapters in place of all weights the first that fit: their kind, the run, its peak.

    ways        kind and adapters, from what costs least
    Shapes      without checkpoints first, then with every block checkpointed
    """
    for checkpoint in ("none", "block") if run.checkpointing == "none" else ("block",):
        for kind, lora in ways:
            tried = run.replace(lora=lora, checkpoint=checkpoint)
            try:
                size = peak(tried)
            except ValueError:  # what is not described beside adapters
                continue
            if size <= limit:
                return [(kind, tried, size)]
    return []


def instead(
    state: State,
    model: Model,
    recipe: Recipe,
    run: Run,
    limit: int,
    lookup: Lookup,
    top: type[Highest],
) -> list[list[Any]]:
    """Adapters in place of all weights, or the same ones over a base in NF4, where these fit.

    Shapes      what to say, its line, what it sets
    """

    def formats(tried: Run) -> Recipe:
        """Those there are, or where no control says these, what the program then takes."""
        trained = QLORA if tried.lora and tried.lora.base else LORA
        return recipe if precision_of(recipe) else recipe_of(state | sets | {"trained": trained})

    def peak(tried: Run) -> int:
        return top(model, formats(tried), tried, lookup).total

    whole = run.lora is None
    sets: State = {"targets": EVERY, "rank": START["rank"], "lora_dropout": 0} if whole else {}
    kinds = (LORA, QLORA) if whole else (QLORA,)
    try:
        ways = [(kind, lora_of(state | sets | {"trained": kind})) for kind in kinds]
    except ValueError:
        return []
    made: list[list[Any]] = []
    for kind, tried, size in adapted(run, ways, limit, peak):
        blocks = tried.checkpointing != run.checkpointing
        told, line = say.IN_NF4_IN_BLOCKS if blocks else say.IN_NF4, LOADED.format(QUANTIZED)
        if whole:
            told = say.INSTEAD_IN_BLOCKS if blocks else say.INSTEAD
            line = flag(ADAPTERS[kind][1], recipe, tried) or ""
        if blocks:
            line = f"{flag('block checkpointing', recipe, tried)}; {line}"
        name = ADAPTERS[kind][0]
        sets["trained"] = kind
        sets.update(kept(state | sets, formats(tried), tried))
        need = per_gpu(text(size), run.devices.ranks)
        made.append([Message(told, kind=name, size=need), line, sets])
    return made


def kept(state: State, recipe: Recipe, run: Run) -> State:
    """What has to be said for a state to be of this recipe and this run, not of a program's own."""
    sets: State = {}
    if precision_of(recipe_of(state)) != precision_of(recipe):
        sets["precision"] = precision_of(recipe)
    if run_of(state).checkpointing != run.checkpointing:
        sets["checkpoint"] = run.checkpointing
    return sets


MOST_CARDS = 512


def divided(
    model: Model, recipe: Recipe, run: Run, limit: int, lookup: Lookup, top: type[Highest] = Highest
) -> list[tuple[Run, int]]:
    """The run over as few cards as it fits with FSDP2, twice as many at each try, and its peak.

    As it is, and with every block checkpointed where that takes fewer cards; none where no number
    of cards makes it fit, or where this step is not described over several.
    """
    now, made = run.devices, []
    how: dict[str, Any] = now.told(FsdpPolicy) | synced(run.loop, run.micro_batches)
    most = MOST_CARDS if now.ranks == now.data and now.zero in (0, 3) else 0
    for tried in (run, run.replace(checkpoint="block")):
        cards = now.data if now.data > 1 and not now.zero else 2 * now.data
        while cards <= most:
            try:
                over = tried.replace(devices=Sharding.of(data=cards, zero=3, **how))
                size = top(model, recipe, over, lookup).total
            except ValueError:
                break
            if size <= limit:
                made.append((over, size))
                most = cards // 2
            cards *= 2
    return made
