"""The cheapest changes that make a step fit: memlab.explain's search, asked with moments."""

from __future__ import annotations

from ..explain.changes import CHANGES, Found
from ..explain.changes import cheapest as search
from ..model import Model
from ..recipe import Recipe
from ..recipe.parallelism import Sharding
from ..run import Run
from ..terms.lora import Lora
from .highest import Highest
from .sharded import synced

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .highest import Lookup


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


MOST_CARDS = 512


def divided(
    model: Model, recipe: Recipe, run: Run, limit: int, lookup: Lookup, top: type[Highest] = Highest
) -> list[tuple[Run, int]]:
    """The run over as few cards as it fits with FSDP2, twice as many at each try, and its peak.

    As it is, and with every block checkpointed where that takes fewer cards; none where no number
    of cards makes it fit, or where this step is not described over several.
    """
    now, made = run.devices, []
    how: dict[str, Any] = now.policy | synced(run.loop, run.micro_batches)
    most = MOST_CARDS if now.ranks == now.data and now.zero in (0, 3) else 0
    for tried in (run, run.replace(checkpoint="block")):
        cards = now.data if now.data > 1 and not now.zero else 2 * now.data
        while cards <= most:
            try:
                over = tried.replace(devices=Sharding(data=cards, zero=3, **how))
                size = top(model, recipe, over, lookup).total
            except ValueError:
                break
            if size <= limit:
                made.append((over, size))
                most = cards // 2
            cards *= 2
    return made
