"""What else would hold less: a change to what a program uses, rehearsed as the program itself was.

Each is what a reader would change in a line of the program, made to the library below it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from importlib import import_module
from importlib.util import find_spec
from inspect import signature
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.optim import optimizer as optimizers
from torch.utils.data import DataLoader

from ..base.message import Message
from ..measure.fake_cuda.undo import Changes
from ..verdict import DOES_NOT_FIT
from .files import quiet
from .watched import checkpoints

if TYPE_CHECKING:
    from .answer import Rehearsal

FIRST = 3  # of those that apply are rehearsed
ADAMS = ("Adam", "AdamW")  # of torch.optim; bitsandbytes has Adam8bit and AdamW8bit
NO_GRADIENTS = "torch.no_grad() around the calls"
CHECKPOINTS = "gradient checkpointing: model.gradient_checkpointing_enable()"
HALF = "half the rows of every batch: at most {half} instead of {rows}"
EIGHT = "states of 8 bits: bitsandbytes.optim.{name}8bit instead of torch.optim.{name}"
ONE_BY_ONE = "foreach=False in the optimizer"
TOGETHER = "the {count} of these that hold less, together"
ENDED = "it ended by itself"


class Remedied(NamedTuple):
    """A change, and the program rehearsed with it; where that was not possible, why."""

    words: str
    found: Rehearsal | None
    why_not: str = ""

    @property
    def fits(self) -> bool:
        """Whether it may fit the card that was named."""
        verdict = None if self.found is None else self.found.verdict
        return verdict is not None and verdict.word != DOES_NOT_FIT


class Remedy(NamedTuple):
    """A change of a program's line.

    words       what is changed, or None where there is nothing to change
    change      the same, below the program
    """

    words: Callable[[Rehearsal], str | None]
    change: Callable[[Changes], None]


def remedied(found: Rehearsal) -> list[Remedied]:
    """The first changes that apply, each alone; and together, where none is enough.

    On the same rank.
    """

    def again(words: str, change: Callable[[Changes], None]) -> Remedied:
        try:
            with quiet():
                other = found.again(replace(found.asked, change=change))
        except ValueError as error:
            return Remedied(words, None, str(error))
        if other.status:
            return Remedied(words, None, (other.failure or ENDED).splitlines()[-1])
        return Remedied(words, other)

    apply = [(words, remedy.change) for remedy in REMEDIES if (words := remedy.words(found))]
    done = [again(words, change) for words, change in apply[:FIRST]]
    less = [change for one, (_, change) in zip(done, apply, strict=False) if _helps(one, found)]
    if len(less) > 1 and not any(one.fits for one in done):

        def all_of_them(changes: Changes) -> None:
            for change in less:
                change(changes)

        done.append(again(Message(TOGETHER, count=len(less)), all_of_them))
    return done


def _helps(one: Remedied, found: Rehearsal) -> bool:
    return one.found is not None and one.found.peak < found.peak


def _computed_only(found: Rehearsal) -> str | None:
    forgets = not found.steps and found.tracker.turned < 0
    return NO_GRADIENTS if forgets and found.tracker.trains else None


def _without_gradients(changes: Changes) -> None:
    changes.enter_context(torch.no_grad())


def _checkpointable(found: Rehearsal) -> str | None:
    return CHECKPOINTS if found.tracker.trains_whole and found.steps else None


def _checkpoint(changes: Changes) -> None:
    def enable(module: Any, _: Any) -> None:
        if checkpoints(module):
            module.gradient_checkpointing_enable({"use_reentrant": False})

    changes.callback(register_module_forward_pre_hook(enable).remove)


def _divisible(found: Rehearsal) -> str | None:
    rows = found.loads.rows
    return Message(HALF, half=rows - rows // 2, rows=rows) if rows > 1 else None


def _halve(changes: Changes) -> None:
    made = DataLoader.__init__
    known = signature(made)
    halved: list[Any] = []  # samplers of batches; a library may hand one on to a loader of its own

    @wraps(made)
    def make(loader: Any, *args: Any, **kwargs: Any) -> None:
        said = known.bind(loader, *args, **kwargs)
        batches = said.arguments.get("batch_sampler")
        inside = getattr(batches, "batch_sampler", batches)
        if not any(inside is each for each in halved):
            if inside is not None and hasattr(inside, "batch_size"):
                inside.batch_size -= inside.batch_size // 2
            elif inside is None:
                size = said.arguments.get("batch_size", 1)
                said.arguments["batch_size"] = size and size - size // 2
        made(*said.args, **said.kwargs)
        halved.extend((inside, loader.batch_sampler))

    changes.replace(DataLoader, "__init__", make)


def _wide_states(found: Rehearsal) -> str | None:
    stepped = found.tracker.stepped
    name = next((name for name in ADAMS if getattr(torch.optim, name) in stepped), None)
    if name is None or find_spec("bitsandbytes") is None or found.backend != "cuda":
        return None
    import_module("bitsandbytes")  # before a card is shown
    return Message(EIGHT, name=name)


def _narrow_states(changes: Changes) -> None:
    for name in ADAMS:
        before = getattr(torch.optim, name)
        changes.everywhere(before, _of_eight_bits(before, name))


def _of_eight_bits(before: Any, name: str) -> Any:
    kind: Any = getattr(import_module("bitsandbytes").optim, f"{name}8bit")
    theirs = signature(kind.__init__).parameters

    class Narrow(kind):  # type: ignore[misc]
        def __init__(self, params: Any, *args: Any, **kwargs: Any) -> None:
            said = signature(before).bind(params, *args, **kwargs).arguments
            super().__init__(**{key: value for key, value in said.items() if key in theirs})

    return Narrow


def _together(found: Rehearsal) -> str | None:
    return ONE_BY_ONE if found.phase == "optimizer" and found.tracker.foreach else None


def _one_by_one(changes: Changes) -> None:
    changes.everywhere(optimizers._default_to_fused_or_foreach, lambda *_, **__: (False, False))


REMEDIES = (
    Remedy(_computed_only, _without_gradients),
    Remedy(_checkpointable, _checkpoint),
    Remedy(_together, _one_by_one),
    Remedy(_divisible, _halve),
    Remedy(_wide_states, _narrow_states),
)
