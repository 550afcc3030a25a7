"""A host and a device on a machine that has one memory: FSDP2's copies between them are made.

`CPUOffloadPolicy` brings parts of weights to the device with `part.to(device, non_blocking=True)`,
and sends parts of gradients away with `part.to(host, non_blocking=False)` where nothing is pinned.
On a CPU the two places are one, and neither call copies. Here each of them does, so that a tracker
sees on both sides what a GPU and its host would have. The method itself is replaced: autograd runs
backward, and FSDP2's hooks in it, outside of every function mode.
"""

from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor

from ..measure.tracker import Tracker

KEPT = ("weights", "gradients", "optimizer")  # categories of what is on the host


class HostAndDevice(ExitStack):
    """Makes the copies of `CPUOffloadPolicy(pin_memory=False)`, and labels what goes to the host.

    Source      torch, torch/distributed/fsdp/_fully_shard: _fsdp_param.py (all_gather_inputs),
                _fsdp_collectives.py (foreach_reduce)
    """

    def __init__(self, tracker: Tracker) -> None:
        super().__init__()
        self.tracker = tracker
        self._stepped: set[int] = set()

    def __enter__(self) -> "HostAndDevice":
        own = Tensor.to

        def to(tensor: Tensor, *places: Any, **how: Any) -> Tensor:
            moved = len(places) == 1 and isinstance(places[0], torch.device)
            brought = moved and how.get("non_blocking") is True
            inside = torch._C._current_graph_task_id() != -1  # elsewhere it moves a batch
            if brought:
                return tensor.clone()
            if not moved or not inside or "non_blocking" not in how:
                return own(tensor, *places, **how)
            return self.tracker.label(tensor.clone(), "gradients")

        self.enter_context(patch.object(Tensor, "to", to))
        return self

    def hosts(self, ident: int) -> bool:
        """Whether a storage is the host's: what is kept there, or made by the optimizer there.

        To be asked after the steps, when every storage has turned out to be what it is.
        """
        if not self._stepped:
            born = (event for event in self.tracker.timeline if event.kind == "alloc")
            self._stepped = {event.ident for event in born if event.phase == "optimizer"}
        return self.tracker.records[ident].category in KEPT or ident in self._stepped
