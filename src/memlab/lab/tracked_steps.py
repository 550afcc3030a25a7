"""Real training steps under a tracker, each phase by its name: what a step's hills are made of."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from ..ledger import Ledger
from ..measure.step_tracker import StepTracker
from ..measure.terms import births, head, name_logits, width
from ..measure.tracker import Tracker
from ..step.core.moments import hills
from .train import one_thread


class Watched:
    """Steps that were taken: every storage of all of them, and where each step began."""

    def __init__(self, tracker: Tracker, starts: list[int], losses: list[float]) -> None:
        self.tracker, self.starts, self.losses = tracker, starts, losses

    def hills(self, step: int = -1) -> dict[str, Ledger]:
        """The hills of one step, by default of the last; column "measured"."""
        return hills(self.tracker, self.starts[step])

    @property
    def peaks(self) -> list[int]:
        """The most bytes that each step held, in order."""
        ends = [*self.starts[1:], len(self.tracker.timeline)]
        events = self.tracker.timeline
        pairs = zip(self.starts, ends, strict=True)
        return [max(event.total for event in events[start:end]) for start, end in pairs]


def watch(
    module: nn.Module,
    passages: Iterable[Tensor],
    *,
    micro_batches: int = 1,
    set_to_none: bool = True,
    optimizer: type[torch.optim.Optimizer] = torch.optim.AdamW,
    **options: Any,
) -> Watched:
    """Train `module` on passages, one step of the optimizer after so many of them; count all bytes.

    Shapes      a passage is [B, T] token ids, one micro-batch
    module      returns the loss of (ids, labels), or as transformers does of labels=ids
    options     arguments of the optimizer, such as fused=True
    Unit        bytes of storages; gradients that meet are added in place, as autograd adds them
    Leaves out  scratch memory inside one kernel; numbers that autograd wraps (8 bytes each)
    Raises      ValueError for passages that do not make whole steps
    """
    waiting = list(passages)[::-1]  # made before the tracker looks
    if micro_batches < 1 or not waiting or len(waiting) % micro_batches:
        raise ValueError(f"{len(waiting)} passages make no whole steps of {micro_batches}")
    chosen = optimizer(module.parameters(), **options)  # type: ignore[call-arg]
    starts, losses = [], []
    with one_thread(), StepTracker() as tracker:
        tracker.label([module, chosen])
        while waiting:
            starts.append(len(tracker.timeline))
            mean = 0.0
            for _ in range(micro_batches):
                ids_BT = tracker.label(waiting.pop(), "inputs")
                with tracker.phase("forward"):
                    loss = _loss(module, ids_BT)
                    mean += loss.item() / micro_batches
                    if micro_batches > 1:  # the step's loss is the mean over its micro-batches
                        loss = loss / micro_batches
                with tracker.phase("backward"):
                    loss.backward()
                del loss
            losses.append(mean)
            with tracker.phase("optimizer"):
                chosen.step()
            with tracker.phase("zero_grad"):
                chosen.zero_grad(set_to_none=set_to_none)
    name_logits(tracker, births(tracker), width(head(module)))
    return Watched(tracker, starts, losses)


def _loss(module: nn.Module, ids_BT: Tensor) -> Tensor:
    if hasattr(module, "config"):  # of transformers
        return module(ids_BT, labels=ids_BT).loss
    return module(ids_BT, ids_BT)
