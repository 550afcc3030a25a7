"""The inverse of an estimate: the largest batch, the longest sequence that fits a device.

Every answer comes from `memlab.estimate`, so it is as exact as that, and what that leaves out must
be left free: memlab.verdict says how much, or `spare` does, in bytes. A search asks for peaks
alone, and what it ends with is replayed in the allocator.
"""

from __future__ import annotations

from .base.frozen import dataclass
from .devices import Device, room
from .estimate import peak
from .explain.advice import Advice, CannotFit, advice, cheapest_change, judged
from .explain.largest import largest, least_tokens, sized
from .model import Model
from .recipe import Recipe
from .run import Run
from .run.argument_types import check_types
from .run.recipe_choice import recipe_for
from .terms.context import CONTEXT
from .units import MOST, text, whole
from .verdict import DOES_NOT_FIT, Room, Verdict, room_for

HALVINGS = 9  # replays below what is tight, at most
FINE = 256  # the part of what was found by its peak to which they are worth while


@dataclass(frozen=True)
class Fit:
    """The largest number that fits, and the peaks that decided it.

    value       a batch or a number of tokens; 0: not even the smallest fits
    peak        bytes of the step with `value` (of the smallest one where value is 0)
    limit       bytes that the step's tensors may take: what the device has beside the rest
    verdict     on the step with `value`, or on the smallest one: that may be tight
    ended_by    what ended the search: "memory", the "positions" of the model, or the "bound" of a
                batch, memlab.units.MOST, beyond which no step is described
    """

    what: str
    value: int
    peak: int
    limit: int
    device: str
    verdict: Verdict
    ended_by: str = "memory"

    def __str__(self) -> str:
        if not self.value and self.verdict.word == DOES_NOT_FIT:
            over = text(self.peak - self.verdict.room.at_most)
            return f"no {self.what} fits {self.device}: the smallest step is {over} too large"
        if not self.value:
            return (
                f"no {self.what} surely fits {self.device}: the smallest is {self.verdict.told()}"
            )
        held = f"peak {text(self.peak)} of {text(self.limit)}"
        if self.verdict.room.band:
            held = str(self.verdict.parts())
        line = f"largest {self.what} on {self.device}: {self.value:,} ({held})"
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
    spare: int | None = None,
) -> Fit:
    """The largest batch whose step fits; what `run.batch` says is not asked.

    Unit        sequences of `run.tokens` tokens
    Shapes      on: a device's name, or bytes
    spare       bytes to leave free; None: what memlab.verdict.room_for says
    Raises      ValueError for an unknown device, for a run without tokens, and for a step that is
                not described
    """
    check_types(model, run)
    if run.tokens is None:
        raise ValueError("tokens is missing: how many are in each sequence?")
    return _largest("batch", model, recipe, run, room_for(run, on, spare), 1, MOST)


def longest_sequence(
    model: Model,
    recipe: Recipe | str | None,
    run: Run,
    *,
    on: str | int | Device,
    spare: int | None = None,
) -> Fit:
    """The most tokens in a sequence whose step fits, up to the model's positions.

    Unit        tokens; what `run.tokens` says is not asked
    Shapes      on: a device's name, or bytes
    spare       bytes to leave free; None: what memlab.verdict.room_for says
    Raises      ValueError for an unknown device and for a step that is not described
    """
    check_types(model, run)
    least = least_tokens(run)
    most = model.positions - (
        run.phase == "decode"
    )  # where one more is read, at a place of its own
    return _largest("sequence", model, recipe, run, room_for(run, on, spare), least, most)


def _largest(
    what: str,
    model: Model,
    recipe: Recipe | str | None,
    run: Run,
    room: Room,
    least: int,
    most: int,
) -> Fit:
    """The largest that fits by its peak, or of fewer by their replay, where that shows it tight."""
    chosen, named = recipe_for(model, recipe, run), "tokens" if what == "sequence" else what
    known: dict[int, int] = {}

    def held(n: int) -> int:
        if n not in known:
            known[n] = peak(model, chosen, sized(run, named, n))
        return known[n]

    def verdict_on(n: int) -> Verdict:
        return judged(model, chosen, sized(run, named, n), room, held(n))

    value = largest(held, room.surely, least, most)
    verdict = verdict_on(value or least)
    if value and not verdict.fits:
        low, high = 0, value
        # What is reserved grows with the tensors: first as many as it leaves room for, then halves.
        middle = value * room.of_allocator // (verdict.reserved or room.of_allocator)
        for _ in range(HALVINGS):
            middle = max(least, min(middle, high - 1))
            if not low < middle < high:
                break
            if verdict_on(middle).fits:
                low = middle
            else:
                high = middle
            if high - low <= value // FINE:
                break
            middle = (low + high) // 2
        value, verdict = low, verdict_on(low or least)
    bound = "bound" if what == "batch" else "positions"
    ended = bound if value == most else "memory"
    return Fit(what, value, held(value or least), room.surely, room.name, verdict, ended)


def limit_of(on: str | int | Device, spare: int = CONTEXT) -> tuple[int, str]:
    """Bytes that a step may take, and the device's name.

    Raises      ValueError for an unknown device or a size that is none
    """
    whole("spare", spare)
    limit, name = room(on)
    return max(0, limit - spare), name


__all__ = [
    "Advice",
    "CannotFit",
    "Fit",
    "advice",
    "cheapest_change",
    "largest_batch",
    "limit_of",
    "longest_sequence",
]
