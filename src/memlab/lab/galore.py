"""GaLore: AdamW that remembers a gradient's most important directions only.

The gradient of a matrix is projected onto r directions; the two running means live there, in r rows
instead of all. The update is projected back. The gradient itself stays as large as it was.

Letters     R rows and C columns of a matrix, r its rank here: the directions that are kept
"""

from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

BETAS, EPS = (0.9, 0.999), 1e-8


class GaLore(Optimizer):
    """AdamW in a subspace of each matrix, which is chosen anew from time to time.

    Formula     low = basisᵀ · g; low_update = AdamW(low); w -= lr · (decay · w + scale · basis ·
                low_update), with basis and gradient transposed where R > C
    Shapes      basis [min(R, C), r]; exp_avg and exp_avg_sq [r, max(R, C)]
    Unit        state: 4 · r · (min(R, C) + 2 · max(R, C)) bytes
    rank        r, for every matrix; more than min(R, C) is min(R, C)
    every       steps between two choices of the basis, each a singular value decomposition
    Source      Zhao et al. 2024, arXiv:2403.03507, algorithm 2
    Leaves out  quantized states and bases (Q-GaLore), the authors' schedule of the scale
    Raises      ValueError for a parameter that is not a matrix, and for a rank below 1
    """

    def __init__(
        self,
        params: Any,
        lr: float = 3e-3,
        *,
        rank: int,
        every: int = 200,
        scale: float = 0.25,
        weight_decay: float = 0.01,
    ) -> None:
        if rank < 1:
            raise ValueError(f"rank={rank}; at least one direction is needed")
        choices = {"rank": rank, "every": every, "scale": scale, "weight_decay": weight_decay}
        super().__init__(params, {"lr": lr, **choices})
        for p in (p for group in self.param_groups for p in group["params"]):
            if p.ndim != 2:
                raise ValueError(f"shape={tuple(p.shape)} is not a matrix; AdamW takes the others")

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    self._update(p, p.grad, group)

    def _update(self, p: Tensor, grad: Tensor, group: dict[str, Any]) -> None:
        state, wide = self.state[p], p.shape[0] <= p.shape[1]
        grad = grad if wide else grad.mT  # [min, max]
        if not state:
            state["step"] = 0
            shape = (min(group["rank"], grad.shape[0]), grad.shape[1])
            state["exp_avg"], state["exp_avg_sq"] = grad.new_zeros(shape), grad.new_zeros(shape)
        if state["step"] % group["every"] == 0:
            state["basis"] = directions(grad, state["exp_avg"].shape[0])
        state["step"] += 1

        low = state["basis"].mT @ grad
        mean = state["exp_avg"].lerp_(low, 1 - BETAS[0])
        square = state["exp_avg_sq"].lerp_(low.square_(), 1 - BETAS[1])
        mean = mean / (1 - BETAS[0] ** state["step"])
        root = (square / (1 - BETAS[1] ** state["step"])).sqrt_()
        update = state["basis"] @ mean.div_(root.add_(EPS))
        p.mul_(1 - group["lr"] * group["weight_decay"])
        p.add_(update if wide else update.mT, alpha=-group["lr"] * group["scale"])


def directions(grad: Tensor, rank: int) -> Tensor:
    """The `rank` directions in which the columns of a gradient [min, max] extend the most.

    Shapes      result [min, rank], of a storage of its own
    """
    u, _, _ = torch.linalg.svd(grad.float(), full_matrices=False)
    return u[:, :rank].to(grad.dtype).clone(memory_format=torch.contiguous_format)
