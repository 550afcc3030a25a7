"""LoRA in plain torch: a frozen linear layer, and beside it two thin matrices that are trained.

Letters     D inputs, F outputs, r rank; an array carries its own: x_BTD has the shape [B, T, D]
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn


class LoRALinear(nn.Module):
    """base(x) + scale · b(a(x)): `a` narrows to r values, `b` widens them again and starts at zero.

    Shapes      a [r, D], b [F, r], in the format of the base's weight
    Source      Hu et al. 2021, arXiv:2106.09685, section 4.1
    Leaves out  dropout on the adapter's input
    Raises      ValueError for a rank below 1
    """

    def __init__(self, base: nn.Linear, rank: int, alpha: float | None = None) -> None:
        super().__init__()
        if rank < 1:
            raise ValueError(f"rank={rank}; at least 1 is needed")
        self.base = base.requires_grad_(False)
        self.a = nn.Linear(base.in_features, rank, bias=False).to(base.weight)
        self.b = nn.Linear(rank, base.out_features, bias=False).to(base.weight)
        nn.init.zeros_(self.b.weight)
        self.scale = (rank if alpha is None else alpha) / rank

    def forward(self, x_BTD: Tensor) -> Tensor:
        return self.base(x_BTD) + self.b(self.a(x_BTD)) * self.scale

    @torch.no_grad()
    def merged(self) -> nn.Linear:
        """The base with the adapter's product added to its weight, which changes.

        Formula     W + scale · b · a, computed in fp32 and rounded once to the format of W
        Source      Hu et al. 2021, section 4.1: no extra time in inference
        Raises      TypeError for a base that is not a plain linear layer: codes cannot be added to
        """
        if type(self.base) is not nn.Linear:
            raise TypeError(f"a {type(self.base).__name__} holds no weight that can be added to")
        update_FD = self.b.weight.float() @ self.a.weight.float() * self.scale
        self.base.weight.copy_(self.base.weight + update_FD)
        return self.base


def adapt(
    module: nn.Module,
    rank: int,
    targets: Sequence[str] = ("q", "v"),
    *,
    alpha: float | None = None,
) -> nn.Module:
    """Freeze a model and put an adapter beside each linear layer of these names, in place.

    targets     last parts of names: "q" is layers.0.attention.q, layers.1.attention.q …
    Raises      ValueError for a name that no linear layer has
    """
    module.requires_grad_(False)
    found = [
        (parent, name, child)
        for parent in list(module.modules())
        for name, child in parent.named_children()
        if isinstance(child, nn.Linear)
    ]
    names = sorted({name for _, name, _ in found})
    for target in targets:
        if target not in names:
            raise ValueError(f"no linear layer is named {target!r}; known: {', '.join(names)}")
    for parent, name, child in found:
        if name in targets:
            setattr(parent, name, LoRALinear(child, rank, alpha))
    return module


def merge(module: nn.Module) -> nn.Module:
    """Put each adapted layer's merged base in its place: the model as it was, with other weights.

    Raises      TypeError for an adapter beside a base that is not a plain linear layer
    """
    for parent in list(module.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, LoRALinear):
                setattr(parent, name, child.merged())
    return module
