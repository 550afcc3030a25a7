"""Real routers that choose what a trace assumes, so that a real step can be held against it."""

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from memlab.measure.fake_cuda.likely import experts, router
from memlab.measure.traced import Trace


class Routed(TorchDispatchMode):
    """While its block runs, each choice of a router is the assumed one.

    assumed     how many choices that were
    """

    def __init__(self, routing: str = "even") -> None:
        super().__init__()
        self.routing, self.assumed = routing, 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if func is torch.ops.aten.topk.default and router(args[0], args[1]):
            self.assumed += 1
            picked = result[1]
            picked.copy_(experts(tuple(picked.shape), args[0].size(-1), self.routing))
        return result


def is_assumed(step: Trace) -> bool:
    """Whether a routing was assumed for a trace, and matters."""
    return any(note.startswith("routing:") for note in step.notes)
