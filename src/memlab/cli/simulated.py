"""The simulation behind a ledger, for the moments that stand beside it."""

from __future__ import annotations

from ..model import Model
from ..recipe import Recipe
from ..run import Run

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any


def simulated(model: Model, recipe: Recipe, how: Run, *, every_layer: bool = False) -> Any:
    """A Step, or the Call of an inference; None where a closed form answers, or there is no step.

    The loop's own bytes (`Run.holds`) are not in it: memlab.estimate adds them.
    """
    if how.tokens is None or (how.phase != "train" and how.implementation == "memlab"):
        return None
    if how.phase == "train":
        from ..step.loop import step_of
        from ..step.simulate import simulate

        if every_layer:
            return simulate(model, recipe, how.replace(holds=()), every_layer=True)
        return step_of(model, recipe, how)
    from ..step import calls

    call = calls.prefill if how.phase == "prefill" else calls.decode
    return call(model, recipe, how, every_layer=every_layer)
