"""The cheapest changes that make a step fit: memlab.explain's search, asked with moments."""

from __future__ import annotations

from ..explain.changes import CHANGES, Change, Found
from ..explain.changes import cheapest as search
from ..model import Model
from ..recipe import Recipe
from ..run import Run
from . import described
from .highest import Highest

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from .highest import Lookup


def cheapest(model: Model, recipe: Recipe, run: Run, limit: int, lookup: Lookup) -> Found:
    """What to change, in order; a change whose step has no moments saves nothing here."""

    def peak(recipe: Recipe, run: Run) -> int:
        return Highest(model, recipe, run, lookup).total

    return search(peak, recipe, run, limit, CHANGES)


def known() -> list[Change]:
    """The changes that some step with moments can have: those that the page may advise."""
    recipe, run = Recipe(), Run(tokens=4096)
    return [change for change in CHANGES if not described.of_run(change.turn(recipe, run)[1])]
