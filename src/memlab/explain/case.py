"""A run whose peak is derived again with something turned over, and what a cause turns."""

from __future__ import annotations

from functools import lru_cache

from ..base.frozen import dataclass, replace
from ..estimate import tensor_bytes
from ..formats import storage
from ..model import Model
from ..recipe import Recipe
from ..run import Run
from ..step.core.allocator_replay import replayed
from ..step.loops.loop import at_moment, stored_as, tops
from ..terms import loading
from ..terms.context import READINGS

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


@dataclass(frozen=True)
class Case:
    """A model, a recipe and a run, and what a program has beside its steps.

    beside      "loading": the peak of loading the checkpoint counts too; "allocator": what the
                caching allocator reserves counts, not what tensors hold; "context": the process's
                own bytes on the card
    stored      format of the checkpoint that it is loaded from, which no change of the recipe
                changes; None: that of the recipe
    read        the moment at which a counter was read, of memlab.step.loops.loop.at_moment; None:
                its peak
    """

    model: Model
    recipe: Recipe
    run: Run
    beside: tuple[str, ...] = ()
    stored: str | None = None
    read: str | None = None

    def contents(self) -> dict[str, int]:
        """Bytes by term at the peak; they add to `peak()`.

        Source      memlab.step.loops.loop.tops
        Raises      ValueError for a combination that is not described
        """
        return dict(_contents(self))

    def peak(self) -> int:
        """The most bytes at once."""
        return sum(self.contents().values())

    def replace(self, **changes: Any) -> Case:
        return replace(self, **changes)


def of_run(turn: Callable[[Run], Run | None]) -> Callable[[Case], Case | None]:
    """A function of the run, as one of the case; None where no run can be so."""

    def turned(case: Case) -> Case | None:
        try:
            run = turn(case.run) if case.run.tokens is not None else None
        except ValueError:  # eager attention in memlab's models, say
            return None
        return None if run is None or run == case.run else case.replace(run=run)

    return turned


def of_recipe(turn: Callable[[Recipe], Recipe | None]) -> Callable[[Case], Case | None]:
    """A function of the recipe, as one of the case."""

    def turned(case: Case) -> Case | None:
        recipe = turn(case.recipe)
        return None if recipe is None or recipe == case.recipe else case.replace(recipe=recipe)

    return turned


def holding(what: str) -> Callable[[Case], Case | None]:
    """One thing more that the loop holds."""

    def turned(case: Case) -> Case | None:
        return case.replace(run=case.run.replace(holds=(*case.run.holds, what)))

    return turned


def beside(what: str) -> Callable[[Case], Case | None]:
    """One thing more that the program has beside its steps."""

    def turned(case: Case) -> Case | None:
        if what == "allocator" and case.run.tokens is None:
            return None
        return case.replace(beside=(*case.beside, what))

    return turned


@lru_cache(maxsize=2048)  # a search asks for the same few again and again
def _contents(case: Case) -> dict[str, int]:
    if case.read is not None:
        found = {case.read: at_moment(case.model, case.recipe, case.run, case.read)}
    else:
        found = tops(case.model, case.recipe, case.run, stored=case.stored)
    if "loading" in case.beside:
        found["loading"] = {"weights": _loading(case.model, case.recipe, case.stored)}
    if "context" in case.beside:
        for held in found.values():
            held["other"] = held.get("other", 0) + READINGS[0].context
    top = max(found.values(), key=lambda held: sum(held.values()))
    if "allocator" in case.beside:
        top["allocator"] = replayed(case.model, case.recipe, case.run.replace(holds=())).added
    return {term: size for term, size in top.items() if size}


def _loading(model: Model, recipe: Recipe, stored: str | None) -> int:
    stored = stored or stored_as(recipe)
    tensors = [tensor for tensor in model.tensors() for _ in range(tensor.copies)]
    old = [storage(tensor.numel, stored) for tensor in tensors]
    new = [tensor_bytes(tensor, recipe)["weights"] for tensor in tensors]
    return loading.peak(loading.moments(old, new=new, way="copy")).host
