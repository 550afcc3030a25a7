"""Autocast: operators that compute in a narrow dtype on fp32 weights."""

from __future__ import annotations

from ..core.checkpoints import Frame
from ..core.graph import Tensor
from .elementwise import Elementwise


class Autocast(Elementwise):
    """The narrow dtype of torch.autocast, and the copies of weights that it keeps.

    autocast    None, or the narrow dtype of torch.autocast(device, dtype): linear layers and
                attention compute in it; a weight is cast once and its copy kept to the end
    Source      aten/src/ATen/autocast_mode.h
    """

    def __init__(self, autocast: str | None, *, in_place: bool) -> None:
        super().__init__(in_place=in_place)
        self.autocast = autocast
        self.casts: dict[int, tuple[int | None, Tensor]] = {}  # by weight: its layer, its copy

    def cast(self, x: Tensor) -> Tensor:
        """Into autocast's dtype; a trained fp32 weight once for the whole forward pass."""
        if self.autocast is None:
            return x
        leaf = x.node is not None and x.node.parameter is not None
        if leaf and id(x) in self.casts:
            return self.casts[id(x)][1]
        made = self.to(x, self.autocast)
        if leaf and made is not x:
            self.casts[id(x)] = (self.current, made)
        return made

    def end_autocast(self) -> None:
        """Leave the autocast block: its weight copies stay only where autograd keeps them."""
        first = len(self.log.events)
        for key in [key for key, (layer, _) in self.casts.items() if layer == self.repeated]:
            del self.casts[key]
        self.log.repeat(first, len(self.log.events), self.between)
        self.casts.clear()

    def compute_again(self, frame: Frame) -> None:
        super().compute_again(frame)
        self.casts.clear()  # it was an autocast block of its own
