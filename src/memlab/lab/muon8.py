"""Muon with its momentum in 8 bits: a code for each value, a scale for each block of 128.

Between two steps there is nothing but codes and scales. A step widens the momentum of one matrix,
uses it as Muon does, and rounds it back.

Letters     n values of a matrix, g values in one block
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.optim import Optimizer

from ..terms.optimizer import SMALLEST_QUANTIZED

BLOCK = 128  # 1 + 4/128 bytes per value
LARGEST = 127  # of a code; -128 stays unused, so that a block is symmetric about 0

# Jordan et al. 2024, kellerjordan.github.io/posts/muon: five rounds bring all singular values of
# a matrix near 1.
ROUNDS, COEFFICIENTS = 5, (3.4445, -4.7750, 2.0315)


class Blocks(NamedTuple):
    """A tensor in blocks.

    Shapes      codes [n/g, g] of int8, scales [n/g, 1] of fp32
    """

    codes: Tensor
    scales: Tensor


def narrow(values: Tensor, block: int = BLOCK) -> Blocks:
    """Round each value to a multiple of its block's scale.

    Formula     scale = largest magnitude in the block / 127; code = round(value / scale)
    Raises      ValueError where the block does not divide the number of values
    """
    if values.numel() % block:
        raise ValueError(f"n={values.numel()} is not a multiple of the block of {block}")
    rows = values.float().reshape(-1, block)
    scales = rows.abs().amax(1, keepdim=True) / LARGEST
    # A block of zeros has the scale 0; dividing by 1 instead gives the codes 0.
    codes = (rows / scales.where(scales > 0, 1.0)).round_().to(torch.int8)
    return Blocks(codes, scales)


def widen(blocks: Blocks, shape: tuple[int, ...]) -> Tensor:
    """The values again, in fp32: code times scale, off by half a scale at most."""
    return (blocks.codes * blocks.scales).view(shape)


class Muon8(Optimizer):
    """Muon whose momentum is kept in blocks of 8 bits.

    Formula     m = 0.95 · m + 0.05 · g; update = orthogonal(0.95 · m + 0.05 · g);
                w -= lr · (decay · w + 0.2 · sqrt(max(R, C)) · update); keep narrow(m)
    Shapes      parameters [R, C] only; state["momentum"]: Blocks, or an fp32 [R, C] where the
                matrix has fewer than 4,096 values or the block does not divide them
    Unit        state: n · (1 + 4/128) bytes
    Source      torch.optim.Muon with adjust_lr_fn="match_rms_adamw"; blocks as in Dettmers et al.
                2022, arXiv:2110.02861, with evenly spaced codes
    Raises      ValueError for a parameter that is not a matrix
    """

    def __init__(
        self, params: Any, lr: float = 3e-3, momentum: float = 0.95, weight_decay: float = 0.1
    ) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})
        for p in (p for group in self.param_groups for p in group["params"]):
            if p.ndim != 2:
                raise ValueError(f"shape={tuple(p.shape)} is not a matrix; Muon takes those only")

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    self._update(p, p.grad, group)

    def _update(self, p: Tensor, grad: Tensor, group: dict[str, Any]) -> None:
        update = orthogonal(self._ahead(p, grad, group["momentum"]))
        p.mul_(1 - group["lr"] * group["weight_decay"])
        p.add_(update, alpha=-0.2 * group["lr"] * max(p.shape) ** 0.5)

    def _ahead(self, p: Tensor, grad: Tensor, momentum: float) -> Tensor:
        """Widen the momentum, add the gradient, round it back; what Muon makes orthogonal."""
        kept = self.state[p].get("momentum", torch.zeros_like(p))
        mean = widen(kept, p.shape) if isinstance(kept, Blocks) else kept
        mean.lerp_(grad.to(mean.dtype), 1 - momentum)
        small = p.numel() < SMALLEST_QUANTIZED or p.numel() % BLOCK
        self.state[p]["momentum"] = mean if small else narrow(mean)
        return grad.lerp(mean.to(grad.dtype), momentum)


def orthogonal(matrix: Tensor, dtype: torch.dtype = torch.bfloat16) -> Tensor:
    """About U · Vᵀ of U · S · Vᵀ: the same directions, all with a length near 1.

    Formula     X <- a·X + (b·A + c·A²)·X with A = X·Xᵀ, five times, on the wide side, in `dtype`
    Source      Jordan et al. 2024; torch/optim/_muon.py, `_zeropower_via_newtonschulz`, in bf16
    """
    a, b, c = COEFFICIENTS
    tall = matrix.shape[0] > matrix.shape[1]
    x = matrix.to(dtype).mT if tall else matrix.to(dtype)
    x = x / x.norm().clamp(min=1e-7)
    for _ in range(ROUNDS):
        gram = x @ x.mT
        x = torch.addmm(x, torch.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.mT if tall else x
