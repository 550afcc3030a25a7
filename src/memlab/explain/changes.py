"""What a training step may do differently to need less, and the search for the cheapest changes.

A change is a function of a recipe and a run. The search asks whoever knows a peak: memlab.fit asks
the simulation, the page's calculator its moments. What only the simulation knows, and what is left
when all of these are made, is in memlab.explain.last_changes.
"""

from __future__ import annotations

from ..base.frozen import dataclass
from ..recipe import Recipe
from ..run import Run

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Callable

    Turn = Callable[[Recipe, Run], tuple[Recipe, Run]]
    Peak = Callable[[Recipe, Run], int]


@dataclass(frozen=True)
class Change:
    """One thing that a step may do differently.

    turn        recipe, run -> the recipe and the run with this change in them
    cost        in time, or in what can no longer be done
    replaces    names of changes that have nothing left to do beside this one
    """

    name: str
    turn: Turn
    cost: str
    replaces: tuple[str, ...] = ()

    def beside(self, names: tuple[str, ...]) -> Change:
        """The same, which takes the place of these as well."""
        return Change(self.name, self.turn, self.cost, self.replaces + names)


def _of_run(**changes: object) -> Turn:
    return lambda recipe, run: (recipe, run.replace(**changes))


def _to(name: str) -> Turn:
    """Other formats, the optimizer that there was."""

    def turn(recipe: Recipe, run: Run) -> tuple[Recipe, Run]:
        named = Recipe.named(name)
        if recipe.optimizer == named.optimizer:
            return named, run
        return named.replace(optimizer=recipe.optimizer), run

    return turn


def _eight_bits(recipe: Recipe, run: Run) -> tuple[Recipe, Run]:
    """AdamW alone has such a twin. bitsandbytes' runs on CUDA; of its loop Trainer makes another
    one, which keeps the states of embeddings whole, so that readers of Trainer get torchao's."""
    if recipe.optimizer != "adamw":
        return recipe, run
    own = run.backend == "cuda" and run.loop in ("plain", "keeps-outputs")
    name = "bnb_adamw8bit" if own else "adamw8bit"
    made = recipe.replace(name=f"{recipe.name}, 8-bit states", optimizer=name, states=None)
    return made, run.replace(optimizer_impl=None)


# From what costs nothing to what costs most, for models of transformers: what the page asks about.
# The chapters of Part II tell what each does; memlab.explain.last_changes has more.
CHANGES = (
    Change("fused AdamW", _of_run(optimizer_impl="fused"), "no time: one kernel, no temporaries"),
    Change("SDPA attention", _of_run(attention="sdpa"), "no time: no [B, N, T, T] tensor is kept"),
    Change(
        "torch's loss in chunks",
        _of_run(loss="linear_cross_entropy"),
        "next to no time: the output head works on some rows at a time",
    ),
    Change("autocast", _to("autocast"), "no time: most products in bf16"),
    Change("pure bf16", _to("bf16"), "no time, but small updates are rounded away", ("autocast",)),
    Change(
        "8-bit states",
        _eight_bits,
        "no time, but both states of AdamW are rounded to 8 bits",
        ("fused AdamW",),
    ),
    Change(
        "block checkpointing",
        _of_run(checkpoint="block"),
        "a quarter to a third more computing",
    ),
)


@dataclass(frozen=True)
class Found:
    """What a search came to: the changes with their peaks, or the least that was reached.

    recipe, run     with all of the changes made
    reached         the recipe and the run after each of them
    """

    steps: list[tuple[str, str, int]]
    least: int
    recipe: Recipe | None = None
    run: Run | None = None
    reached: tuple[tuple[Recipe, Run], ...] = ()


def cheapest(
    peak: Peak,
    recipe: Recipe,
    run: Run,
    limit: int,
    changes: tuple[Change, ...],
    last: tuple[Change, ...] = (),
) -> Found:
    """The search itself, for anything that knows the peak of a recipe and a run.

    peak        bytes; ValueError where they are not described
    changes     in the order of their cost; those in `last`, in theirs, only if all else fails
    """
    known: dict[tuple[Recipe, Run], int] = {}

    def at(made: list[Change]) -> tuple[Recipe, Run]:
        found = recipe, run
        for change in made:
            found = change.turn(*found)
        return found

    def held(made: list[Change]) -> int:
        asked = at(made)
        if asked not in known:
            known[asked] = peak(*asked)
        return known[asked]

    def better(made: list[Change], change: Change) -> list[Change]:
        """With one more, less those that it replaces; as they were if it saves nothing."""
        more = [c for c in made if c.name not in change.replaces] + [change]
        try:
            return more if held(more) < held(made) else made
        except ValueError:  # not described for this model
            return made

    def cut(made: list[Change]) -> list[Change]:
        """With micro-batches, as few as fit, or else as many as there are sequences.

        A step inside backward sees one gradient at a time, so it has to go.
        """
        parts = 1
        while held(made) > limit and parts < run.batch:
            parts *= 2
            made = better(made, _micro_batches(run, parts))
        return made

    def rest(made: list[Change]) -> list[Change]:
        """With what else helps: again and again, for one may lay bare what another one touches."""
        before = None
        while made != before:
            before = made
            for change in changes:
                gone = [name for other in made for name in other.replaces]
                if held(made) > limit and change not in made and change.name not in gone:
                    made = better(made, change)
        return made

    made = cut(rest([]))
    for change in last:
        if held(made) > limit and (more := better(made, change)) is not made:
            made = cut(rest(more))
    least = held(made)
    if least > limit:
        return Found([], least)
    names = [change.name for change in changes]
    # Micro-batches, which have no place in either, between both. MicroPython's sort is not stable.
    order = names + [""] + [change.name for change in last]
    made.sort(key=lambda c: order.index(c.name if c.name in order else ""))
    for change in reversed(list(made)):  # the costliest first: is it still needed?
        without = [other for other in made if other is not change]
        try:
            made = without if held(without) <= limit else made
        except ValueError:  # the rest is described only beside it
            continue
    made = _told(made, held)
    every = [made[: i + 1] for i in range(len(made))]
    steps = [(some[-1].name, some[-1].cost, held(some)) for some in every]
    return Found(steps, least, *at(made), reached=tuple([at(some) for some in every]))


def _told(made: list[Change], held: Callable[[list[Change]], int]) -> list[Change]:
    """In an order in which each is described beside those before it: theirs, as far as it is."""
    found: list[Change] = []
    while len(found) < len(made):
        for change in [one for one in made if one not in found]:
            try:
                held(found + [change])
            except ValueError:
                continue
            found.append(change)
            break
        else:
            raise ValueError("no order of these changes is described: " + made[-1].name)
    return found


def _micro_batches(run: Run, parts: int) -> Change:
    passes = parts * run.micro_batches

    def turn(recipe: Recipe, now: Run) -> tuple[Recipe, Run]:
        batch = -(-run.batch // parts)
        return recipe, now.replace(batch=batch, micro_batches=passes, step_in_backward=False)

    name = f"{passes} micro-batches"
    fewer = f"{passes // 2} micro-batches"
    return Change(name, turn, "less parallel work in each", (fewer, "a step inside backward"))
