"""The inverse of an estimate: the largest batch, the longest sequence that fits a device.

Every answer comes from `memlab.estimate`, so it is as exact as that, and what that leaves out must
be left free: `spare` says how many bytes; the default is the CUDA context that others have read.
"""

from __future__ import annotations

from . import run_checks
from .base.frozen import dataclass
from .devices import Device, room
from .estimate import peak
from .explain.changes import Change, Found, cheapest
from .explain.resorts import EVERY, beside_experts, every, fewer_tokens, installed, last_of, line_of
from .explain.several import pipelined
from .model import Model
from .recipe import Recipe
from .recipe.chosen import recipe_for
from .recipe.deepspeed_config import LIBRARIES
from .run import MOST, MOST_PARTS, Run
from .terms.context import CONTEXT
from .units import text, whole

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Callable


MOST_CARDS = 65536  # more are in no cluster


class CannotFit(ValueError):
    """No change that is known makes the step fit; `least` bytes are needed with all of them."""

    def __init__(self, words: str, least: int) -> None:
        super().__init__(words)
        self.least = least


@dataclass(frozen=True)
class Fit:
    """The largest number that fits, and the peaks that decided it.

    value       a batch or a number of tokens; 0: not even the smallest fits
    peak        bytes of the step with `value` (of the smallest one where value is 0)
    limit       bytes that the step may take: the device's, less what is spared
    ended_by    what ended the search: "memory", the "positions" of the model, or the "bound" of a
                batch, memlab.run.MOST, beyond which no step is described
    """

    what: str
    value: int
    peak: int
    limit: int
    device: str
    ended_by: str = "memory"

    def __str__(self) -> str:
        if not self.value:
            over = text(self.peak - self.limit)
            return f"no {self.what} fits {self.device}: the smallest step is {over} too large"
        line = (
            f"largest {self.what} on {self.device}: {self.value:,} "
            f"(peak {text(self.peak)} of {text(self.limit)})"
        )
        if self.ended_by == "positions":
            line += "; the model's positions end it, memory does not"
        if self.ended_by == "bound":
            line += "; more fit, and are in no program: no larger one is described"
        return line


def largest_batch(
    model: Model,
    recipe: Recipe | str | None,
    run: Run,
    *,
    on: str | int | Device,
    spare: int = CONTEXT,
) -> Fit:
    """The largest batch whose step fits; what `run.batch` says is not asked.

    Unit        sequences of `run.tokens` tokens
    Shapes      on: a device's name, or bytes
    Leaves out  what `spare` bytes are left free for
    Raises      ValueError for an unknown device, for a run without tokens, and for a step that is
                not described
    """
    run_checks.asked(model, run)
    if run.tokens is None:
        raise ValueError("tokens is missing: how many are in each sequence?")
    limit, name = limit_of(on, spare)
    return _search("batch", lambda n: _peak(model, recipe, run, batch=n), limit, name, 1, MOST)


def longest_sequence(
    model: Model,
    recipe: Recipe | str | None,
    run: Run,
    *,
    on: str | int | Device,
    spare: int = CONTEXT,
) -> Fit:
    """The most tokens in a sequence whose step fits, up to the model's positions.

    Unit        tokens; what `run.tokens` says is not asked
    Shapes      on: a device's name, or bytes
    Leaves out  what `spare` bytes are left free for
    Raises      ValueError for an unknown device and for a step that is not described
    """
    run_checks.asked(model, run)
    limit, name = limit_of(on, spare)
    least = 2 if run.phase == "train" else 1
    most = model.positions - (
        run.phase == "decode"
    )  # where one more is read, at a place of its own

    def held(n: int) -> int:
        return _peak(model, recipe, run, tokens=n)

    return _search("sequence", held, limit, name, least, most)


def cheapest_change(
    model: Model,
    recipe: Recipe | str | None,
    run: Run,
    *,
    on: str | int | Device,
    spare: int = CONTEXT,
    cards: int = 1,
    library: str | None = None,
) -> list[tuple[str, str, int, str]]:
    """The cheapest changes that make a step fit: none that it could do without.

    Returns     (name, what it costs, peak with all changes so far, the flag or line of the reader's
                library that makes it), the last of them fits; an empty list if the step fits as it
                is
    Shapes      micro-batches cut `run.batch`; `run.micro_batches` are steps of it already. Fewer
                tokens than `run.tokens` come last, down to memlab.explain.resorts.FEWEST
    cards       how many such devices there are: FSDP2 over some of them is a change as well, with
                `run.batch` sequences on each; the peak is that of one of them. Those of a run that
                is divided already stay as many
    library     "deepspeed": its ZeRO 1, 2 and 3 over all cards, in the place of FSDP2
    Leaves out  changes that are not described for this model, those for which the library has no
                flag; combinations that fit only together where each alone saves nothing
    Raises      CannotFit if it does not fit with all of them either
    """
    run_checks.asked(model, run)
    limit, name = limit_of(on, spare)
    if whole("cards", cards) < 1 or cards > MOST_CARDS:
        raise ValueError(f"cards={cards:,}; between 1 and {MOST_CARDS:,} is needed")
    if library not in (None, *LIBRARIES):
        raise ValueError(f"library={library!r}; known: {', '.join(LIBRARIES)}, or None for FSDP2")
    chosen = recipe_for(model, recipe, run)
    if run.devices.deepspeed:
        library = "deepspeed"
    last = (*last_of(max(cards, run.devices.data), library), *fewer_tokens(run))
    if model.experts:
        last = tuple(beside_experts(change) for change in last)
    first = pipelined(EVERY) if run.devices.pipelined else every(run)
    changes, last = (
        tuple(c for c in some if line_of(c.name, chosen, _after(c, chosen, run)) is not None)
        for some in (first, last)
    )

    def search(first: tuple[Change, ...]) -> Found:
        return cheapest(lambda r, how: peak(model, r, how), chosen, run, limit, first, last)

    found = search(changes)
    if _last_of(found, limit, last) and installed(changes) != changes:
        more = search(installed(changes))
        found = min((found, more), key=lambda one: _last_of(one, limit, last))
    if found.least > limit:
        raise CannotFit(
            f"{model.name} needs {text(found.least)} with every change known here; {name} has "
            f"{text(limit)} to give",
            found.least,
        )
    made = found.recipe or chosen, found.run or run
    return [(*step, line_of(step[0], *made) or "") for step in found.steps]


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


def _peak(model: Model, recipe: Recipe | str | None, run: Run, **size: int) -> int:
    # A search begins with fewer rows than anybody would cut.
    batch, tokens = size.get("batch", run.batch), size.get("tokens", run.tokens or 1)
    chunks = min(run.chunks, batch * tokens, MOST_PARTS)
    return peak(model, recipe, run.replace(**size, loss_chunks=chunks or None))


def _search(
    what: str, held: Callable[[int], int], limit: int, name: str, least: int, most: int
) -> Fit:
    """The largest n in least … most with held(n) <= limit; what is held grows with n."""
    low, at_low = least - 1, held(least)
    if at_low > limit:
        return Fit(what, 0, at_low, limit, name)
    high = most + 1
    step = least
    while low + step < high:  # double until it is too large, so that few large steps are simulated
        if held(low + step) > limit:
            high = low + step
            break
        low, step = low + step, 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        if held(middle) > limit:
            high = middle
        else:
            low = middle
    bound = "bound" if what == "batch" else "positions"
    ended = bound if low == most else "memory"
    return Fit(what, low, held(low), limit, name, ended)


def limit_of(on: str | int | Device, spare: int = CONTEXT) -> tuple[int, str]:
    """Bytes that a step may take, and the device's name.

    Raises      ValueError for an unknown device or a size that is none
    """
    whole("spare", spare)
    limit, name = room(on)
    return max(0, limit - spare), name
