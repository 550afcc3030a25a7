"""What to change so that a step fits a card, with the verdicts before and after."""

from __future__ import annotations

from ..base.frozen import dataclass
from ..devices import Device
from ..estimate import peak
from ..model import Model
from ..recipe import Recipe
from ..run import Run
from ..run.argument_types import check_types
from ..run.recipe_choice import recipe_for
from ..sharding.sharding import DEEPSPEED
from ..step.core.allocator_replay import reserved_on
from ..units import text, whole
from ..verdict import DOES_NOT_FIT, Room, Verdict, room_for
from .changes import Change, Found, cheapest
from .device_changes import pipelined
from .last_changes import EVERY, beside_experts, every, fewer_tokens, installed, last_of, line_of

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Callable

    Steps = list[tuple[str, str, int, str]]
    Held = Callable[[Recipe, Run], int]

MOST_CARDS = 65536  # more are in no cluster
TRIES = 3  # searches, where a replay shows that what one ends with is tight


class CannotFit(ValueError):
    """No change that is known makes the step fit; `least` bytes are needed with all of them."""

    def __init__(self, words: str, least: int) -> None:
        super().__init__(words)
        self.least = least


@dataclass(frozen=True)
class Advice:
    """What to change so that a step fits.

    now         the verdict on the step as it is
    changes     as `cheapest_change` returns them
    then        the verdict on the step with all of them: tight where none that is known makes it
                fit surely
    """

    now: Verdict
    changes: Steps
    then: Verdict


def cheapest_change(
    model: Model,
    recipe: Recipe | str | None,
    run: Run,
    *,
    on: str | int | Device,
    spare: int | None = None,
    cards: int = 1,
    library: str | None = None,
) -> Steps:
    """The cheapest changes that make a step fit: none that it could do without.

    Returns     (name, what it costs, peak with all changes so far, the flag or line of the reader's
                library that makes it), the last of them fits, or is tight where none makes it fit
                (`advice` has the verdict); an empty list if the step fits as it is
    Shapes      micro-batches cut `run.batch`; `run.micro_batches` are steps of it already. Fewer
                tokens than `run.tokens` come last, down to memlab.explain.last_changes.FEWEST
    cards       how many such devices there are: FSDP2 over some of them is a change as well, with
                `run.batch` sequences on each; the peak is that of one of them. Those of a run that
                is divided already stay as many
    library     "deepspeed": its ZeRO 1, 2 and 3 over all cards, in the place of FSDP2
    spare       bytes to leave free; None: what memlab.verdict.room_for says
    Leaves out  changes that are not described for this model, those for which the library has no
                flag; combinations that fit only together where each alone saves nothing
    Raises      CannotFit if it does not fit with all of them either
    """
    return advice(model, recipe, run, on=on, spare=spare, cards=cards, library=library).changes


def advice(
    model: Model,
    recipe: Recipe | str | None,
    run: Run,
    *,
    on: str | int | Device,
    spare: int | None = None,
    cards: int = 1,
    library: str | None = None,
) -> Advice:
    """The same, with the verdicts before and after."""
    check_types(model, run)
    room = room_for(run, on, spare)
    if whole("cards", cards) < 1 or cards > MOST_CARDS:
        raise ValueError(f"cards={cards:,}; between 1 and {MOST_CARDS:,} is needed")
    if library not in (None, DEEPSPEED):
        raise ValueError(f"library={library!r}; known: {DEEPSPEED}, or None for FSDP2")
    chosen = recipe_for(model, recipe, run)
    known: dict[tuple[Recipe, Run], int] = {}

    def held(recipe: Recipe, run: Run) -> int:
        if (recipe, run) not in known:
            known[recipe, run] = peak(model, recipe, run)
        return known[recipe, run]

    def surely(recipe: Recipe, how: Run) -> int:
        """The peak, and of what several ranks need beside it what a single one does not."""
        return held(recipe, how) + room.surely - room_for(how, on, spare).surely

    def ended(found: Found) -> Advice:
        made = found.recipe or chosen, found.run or run
        then = judged(model, *made, room_for(made[1], on, spare), held(*made))
        steps = zip(found.steps, found.reached, strict=True)
        lines = [(*step[:2], held(*at), line_of(step[0], *made) or "") for step, at in steps]
        return Advice(now, lines, then)

    now = judged(model, chosen, run, room, held(chosen, run))
    if now.fits:
        return Advice(now, [], now)
    search = _Search(model, chosen, run, cards, library)
    limit, tight = room.surely, None
    for _ in range(TRIES):
        found = search.within(limit, surely)
        if found.least > limit:
            break
        made = ended(found)
        if made.then.fits:
            return made
        tight = tight or made
        limit = min(limit, made.then.peak) - made.then.over
    if tight is None and room.at_most > room.surely:
        found = search.within(room.at_most, held)
        tight = ended(found) if found.least <= room.at_most else None
    if tight is None:
        raise CannotFit(
            f"{model.name} needs {text(found.least)} with every change known here; {room.name} has "
            f"{text(room.at_most)} to give",
            found.least,
        )
    return tight


def judged(model: Model, recipe: Recipe, run: Run, room: Room, held: int) -> Verdict:
    """The verdict on a step with this peak, replayed where that may matter."""
    found = room.verdict(held)
    if not room.band or found.word == DOES_NOT_FIT:
        return found
    return room.verdict(held, reserved_on(model, recipe, run, room.of_allocator))


class _Search:
    """The changes that this run's reader can make, and the search among them."""

    def __init__(
        self, model: Model, recipe: Recipe, run: Run, cards: int, library: str | None
    ) -> None:
        if run.devices.deepspeed:
            library = "deepspeed"
        last = (*last_of(max(cards, run.devices.data), library), *fewer_tokens(run))
        if model.experts:
            last = tuple(beside_experts(change) for change in last)
        first = pipelined(EVERY) if run.devices.pipelined else every(run)
        self.asked = recipe, run
        self.changes, self.last = (
            tuple(c for c in some if line_of(c.name, recipe, _after(c, recipe, run)) is not None)
            for some in (first, last)
        )

    def within(self, limit: int, held: Held) -> Found:
        """The cheapest changes with which what is held is no more than the limit."""

        def search(first: tuple[Change, ...]) -> Found:
            return cheapest(held, *self.asked, limit, first, self.last)

        found = search(self.changes)
        if _last_of(found, limit, self.last) and installed(self.changes) != self.changes:
            more = search(installed(self.changes))
            found = min((found, more), key=lambda one: _last_of(one, limit, self.last))
        return found


def _last_of(found: Found, limit: int, last: tuple[Change, ...]) -> int:
    """How far down the list of what stands last a search had to go; past its end: it fits not."""
    if found.least > limit:
        return 1 + len(last) + found.least
    names = [change.name for change in last]
    return max((1 + names.index(name) for name, *_ in found.steps if name in names), default=0)


def _after(change: Change, recipe: Recipe, run: Run) -> Run:
    """The run with this change alone in it, for its line; as it was where it cannot be."""
    try:
        return change.turn(recipe, run)[1]
    except ValueError:
        return run
