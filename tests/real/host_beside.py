"""Trainer's FSDP2 with its weights on a host: which storages are that host's.

Beside the parts of weights and gradients these are whatever the norm of the gradients and the
optimizer's step make, from the first norm of a step until the optimizer is done.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import accumulate
from typing import Any
from unittest.mock import patch

import torch.distributed.fsdp
from torch.distributed.fsdp import CPUOffloadPolicy
from torch.optim.optimizer import register_optimizer_step_post_hook

from memlab.lab.host_and_device import HostAndDevice
from memlab.measure.step_tracker import StepTracker

NORM = "aten._foreach_norm.Scalar"  # the first operator of clip_grad_norm_, which nobody else asks


class Beside(HostAndDevice):
    """The same two places where a trainer runs the steps, whose phases nobody marks."""

    def __init__(self, tracker: StepTracker) -> None:
        super().__init__(tracker)
        self._ended = [len(tracker.timeline)]  # behind which event each optimizer's step was over

    def __enter__(self) -> "Beside":
        super().__enter__()
        handle = register_optimizer_step_post_hook(
            lambda *_: self._ended.append(len(self.tracker.timeline))
        )
        self.callback(handle.remove)
        return self

    def hosts(self, ident: int) -> bool:
        """Whether a storage is the host's. To be asked after the steps."""
        if not self._stepped:
            events = self.tracker.timeline
            for begun, ended in zip(self._ended, self._ended[1:], strict=False):
                norms = [event.index for event in events[begun:ended] if event.op == NORM]
                born = (event for event in events[norms[0] : ended] if event.kind == "alloc")
                self._stepped |= {event.ident for event in born}
        return super().hosts(ident)

    def highest(self, tracker: StepTracker, first: int, last: int) -> int:
        """The most bytes that the host has in these events."""
        changes = (event.bytes if self.hosts(event.ident) else 0 for event in tracker.timeline)
        return max(list(accumulate(changes))[first:last])


@contextmanager
def unpinned() -> Iterator[None]:
    """accelerate's CPUOffloadPolicy without pinned memory, for which a GPU would be needed."""

    class Unpinned(CPUOffloadPolicy):
        def __init__(self, *_: Any, **__: Any) -> None:
            object.__setattr__(self, "pin_memory", False)

    with patch.object(torch.distributed.fsdp, "CPUOffloadPolicy", Unpinned):
        yield
