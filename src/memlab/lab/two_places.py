"""A host and a device on a machine that has one memory: FSDP2's copies between them are made.

`CPUOffloadPolicy` brings parts of weights to the device with `part.to(device, non_blocking=True)`,
and sends parts of gradients away with `part.to(host, non_blocking=False)` where nothing is pinned.
On a CPU the two places are one, and neither call copies. Here each of them does, so that a tracker
sees on both sides what a GPU and its host would have.
"""

from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from ..measure.tracker import Tracker

KEPT = ("weights", "gradients", "optimizer")  # categories of what is on the host


class TwoPlaces(TorchFunctionMode):
    """Makes the copies of `CPUOffloadPolicy(pin_memory=False)`, and labels what goes to the host.

    Source      torch 2.13, torch/distributed/fsdp/_fully_shard: _fsdp_param.py (all_gather_inputs),
                _fsdp_collectives.py (foreach_reduce)
    """

    def __init__(self, tracker: Tracker) -> None:
        super().__init__()
        self.tracker = tracker
        self._stepped: set[int] = set()

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        moved = func is Tensor.to and len(args) == 2 and isinstance(args[1], torch.device)
        if not moved or "non_blocking" not in kwargs:
            return func(*args, **kwargs)
        copy = args[0].clone()
        return copy if kwargs["non_blocking"] else self.tracker.label(copy, "gradients")

    def hosts(self, ident: int) -> bool:
        """Whether a storage is the host's: what is kept there, or made by the optimizer there.

        To be asked after the steps, when every storage has turned out to be what it is.
        """
        if not self._stepped:
            born = (event for event in self.tracker.timeline if event.kind == "alloc")
            self._stepped = {event.ident for event in born if event.phase == "optimizer"}
        return self.tracker.records[ident].category in KEPT or ident in self._stepped
