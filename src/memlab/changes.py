"""The cheapest changes of a training step that make it fit a device, in the order of their cost."""

from __future__ import annotations

from .devices import Device
from .fit import ON_A_GPU, SPARE, limit_of, peak_of
from .frozen import dataclass
from .model import Model
from .recipe import Recipe
from .step.lora import Lora
from .units import text

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any


@dataclass(frozen=True)
class Change:
    """One thing that a step may do differently.

    setting     what it sets of memlab.step.simulate's arguments, the recipe included
    cost        in time, or in what can no longer be done
    """

    name: str
    setting: dict[str, Any]
    cost: str


# From what costs nothing to what costs most. Chapters 10 and 12 to 20 tell what each does.
CHANGES = (
    Change("fused AdamW", {"optimizer_impl": "fused"}, "no time: one kernel, no temporaries"),
    Change("SDPA attention", {"attention": "sdpa"}, "no time: no [B, N, T, T] tensor is kept"),
    Change("a loss in chunks", {"loss": "chunked"}, "next to no time: a loop over rows"),
    Change(
        "a step inside backward",
        {"step_in_backward": True},
        "no time, but no clipping by the norm of all gradients and no micro-batches",
    ),
    Change("autocast", {"recipe": "autocast"}, "no time: most products in bf16"),
    Change("pure bf16", {"recipe": "bf16"}, "no time, but small updates are rounded away"),
    Change("block checkpointing", {"checkpoint": "block"}, "a quarter to a third more computing"),
)
EVERY_LINEAR = ("q", "k", "v", "out", "gate", "up", "down")
ADAPTERS = Change(
    "LoRA of rank 16 on every linear layer",
    {"lora": Lora(16, EVERY_LINEAR)},
    "no time, but another result: the weights stay as they are",
)


def cheapest_change(
    model: Model,
    recipe: Recipe | str = "fp32",
    *,
    on: str | int | Device,
    batch: int,
    tokens: int,
    spare: int = SPARE,
    **choices: Any,
) -> list[tuple[str, str, int]]:
    """The cheapest changes that make a step fit: none that it could do without.

    Returns     (name, what it costs, peak with all changes so far), the last of them fits; an
                empty list if the step fits as it is
    Shapes      micro-batches cut `batch`; choices["micro_batches"] are steps of `batch` already
    Leaves out  changes that are not described for this model; combinations that fit only together
                where each alone saves nothing
    Raises      ValueError if it does not fit with all of them either
    """
    limit, name = limit_of(on, spare)
    chosen = Recipe.named(recipe) if isinstance(recipe, str) else recipe
    start: dict[str, Any] = {"recipe": chosen, "micro_batches": chosen.accumulate, "batch": batch}
    start |= {**ON_A_GPU, "tokens": tokens, **choices}

    def peak(changes: list[Change]) -> int:
        setting = dict(start)
        for change in changes:
            setting |= change.setting
        return peak_of(model, **setting)

    made: list[Change] = []
    before = None
    while made != before:  # once more: one change may have laid bare what another one touches
        before = made
        for change in CHANGES:
            if peak(made) > limit and change not in made:
                made = _better(peak, made, change)
    made.sort(key=CHANGES.index)
    made = _cut(peak, made, limit, start)
    if peak(made) > limit:
        made = _cut(peak, _better(peak, made, ADAPTERS), limit, start)
    if (least := peak(made)) > limit:
        raise ValueError(
            f"{model.name} needs {text(least)} with every change known here; {name} has "
            f"{text(limit)} to give"
        )
    for change in reversed(list(made)):  # the costliest first: is it still needed?
        without = [other for other in made if other is not change]
        if peak(without) <= limit:
            made = without
    return [(c.name, c.cost, peak(made[: i + 1])) for i, c in enumerate(made)]


def _better(peak: Any, made: list[Change], change: Change) -> list[Change]:
    """The changes with one more, less those that it replaces; as they were if it saves nothing."""
    more = [c for c in made if not set(c.setting) <= set(change.setting)] + [change]
    try:
        return more if peak(more) < peak(made) else made
    except ValueError:  # not described for this model
        return made


def _cut(peak: Any, made: list[Change], limit: int, start: dict[str, Any]) -> list[Change]:
    """With micro-batches, as few as fit, or else as many as there are sequences.

    A step inside backward sees one gradient at a time, so it has to go.
    """
    parts, batch = 1, start["batch"]
    while peak(made) > limit and parts < batch:
        parts *= 2
        passes = parts * start["micro_batches"]
        setting = {"batch": -(-batch // parts), "micro_batches": passes, "step_in_backward": False}
        cut = Change(f"{passes} micro-batches", setting, "less parallel work in each")
        made = _better(peak, made, cut)
    return made
