"""Two steps under a tracker, told by their moments: what a rank sends back to who started it."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from itertools import accumulate
from typing import Any

from torch import Tensor
from torch.optim import Optimizer

from ..measure.tracker import Tracker
from ..model import Model
from ..recipe import Recipe
from ..run import Run

QUIET = ("after_forward", "after_backward", "between_steps")
Held = dict[str, Any]
Marks = dict[str, int]  # moments, by the number of the last event before them
Steps = Callable[[Model, Recipe | str, Run], Held]


def each(steps: Steps, questions: list[tuple[Model, Recipe | str, Run]]) -> list[Held]:
    """`steps` of several questions, so that processes start only once."""
    return [steps(*question) for question in questions]


def now(tracker: Tracker) -> int:
    """The number of the last event."""
    return len(tracker.timeline) - 1


def one_pass(
    tracker: Tracker,
    marks: Marks,
    loss_of: Callable[[], Tensor],
    run: Run,
    *,
    cast: AbstractContextManager[Any] | None = None,
    between: Callable[[], None] = lambda: None,
) -> None:
    """Forward and backward of one micro-batch, whose loss is divided by how many there are.

    cast        in which the forward pass runs, such as autocast
    between     what has to be done between the two
    """
    with tracker.phase("forward"), cast or nullcontext():
        loss = loss_of()
        loss = loss / run.micro_batches if run.micro_batches > 1 else loss
    marks["after_forward"] = now(tracker)
    between()
    with tracker.phase("backward"):
        loss.backward()


def update(tracker: Tracker, marks: Marks, optimizer: Optimizer) -> None:
    """The optimizer's step, and the gradients go."""
    marks["after_backward"] = now(tracker)
    with tracker.phase("optimizer"):
        optimizer.step()
    optimizer.zero_grad()
    marks["between_steps"] = now(tracker)


def told(
    tracker: Tracker, marks: Marks, counted: Callable[[int], bool] = lambda ident: True
) -> Held:
    """What was held at the quiet moments, and at the peaks of the first step and of the second.

    marks       the last event before each step, "first" and "second", and before quiet moments
    counted     whether a storage counts, told by its number
    Unit        bytes of storages
    """
    totals = list(accumulate(e.bytes if counted(e.ident) else 0 for e in tracker.timeline))
    top = max(range(marks["second"], len(totals)), key=totals.__getitem__)
    contents: dict[str, int] = {}
    for record, size in tracker.alive(top):
        if size and counted(record.ident):
            contents[record.category] = contents.get(record.category, 0) + size
    return {
        **{moment: totals[marks[moment]] for moment in QUIET if moment in marks},
        "first_peak": max(totals[marks["first"] : marks["second"] + 1]),
        "peak": totals[top],
        "phase": tracker.timeline[top].phase,
        "contents": contents,
    }
