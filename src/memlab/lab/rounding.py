"""Training in bf16 alone: why small updates vanish, and how a coin brings them back.

bf16 keeps 8 bits of a number, so neighbours are 1/128 to 1/256 of it apart. An update that is
smaller than half of that is lost when it is rounded to the nearest, each time anew. Rounded up or
down by chance, with the right odds, it is right on average.
"""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

LOW_BITS = 16  # of an fp32 number; its upper half is a bf16 number


def stochastic_round(x: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """fp32 → bf16, up or down by chance: the odds are how near each neighbour is.

    Formula     the upper 16 bits of x + r, r uniform over the values of the lower 16 bits
    Shapes      x of any shape, in fp32; the same in bf16
    Source      Gupta et al. 2015, arXiv:1502.02551, section 3; as in torchao's optimizers
    Leaves out  what is not finite: it is rounded as usual
    Raises      TypeError for another format
    """
    if x.dtype != torch.float32:
        raise TypeError(f"x is in {x.dtype}; torch.float32 is rounded here")
    bits = x.view(torch.int32)
    noise = torch.randint(
        1 << LOW_BITS, x.shape, dtype=torch.int32, device=x.device, generator=generator
    )
    # Magnitudes: adding to the bits moves away from zero, whatever the sign.
    rounded = (bits + noise).bitwise_and_(-(1 << LOW_BITS)).view(torch.float32)
    return torch.where(x.isfinite(), rounded, x).to(torch.bfloat16)


class RoundedAdamW(Optimizer):
    """AdamW on bf16 parameters and states; the arithmetic is fp32, its result rounded by chance.

    Unit        states of 2 + 2 bytes a parameter, and nothing else that stays
    Source      Loshchilov and Hutter 2019, arXiv:1711.05101, algorithm 2
    Leaves out  parameter groups with own settings, complex and sparse parameters
    """

    def __init__(
        self,
        parameters: Iterable[Tensor],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.01,
        *,
        stochastic: bool = True,
    ) -> None:
        settings = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        super().__init__(parameters, settings)
        self.stochastic, self.steps = stochastic, 0

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """One update; each tensor's fp32 copies are gone before the next one's are made."""
        self.steps += 1
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    self._update(p, group)

    def _update(self, p: Tensor, group: dict[str, Any]) -> None:
        state = self.state[p]
        for name in ("exp_avg", "exp_avg_sq"):
            state.setdefault(name, torch.zeros_like(p))
        first, second = group["betas"]
        gradient, weight = p.grad.float(), p.float()  # type: ignore[union-attr]
        mean = state["exp_avg"].float().lerp_(gradient, 1 - first)
        square = state["exp_avg_sq"].float().mul_(second)
        square.addcmul_(gradient, gradient, value=1 - second)
        state["exp_avg"].copy_(mean)
        state["exp_avg_sq"].copy_(square)
        size = group["lr"] / (1 - first**self.steps)
        root = (square / (1 - second**self.steps)).sqrt_().add_(group["eps"])
        weight.mul_(1 - group["lr"] * group["weight_decay"]).addcdiv_(mean, root, value=-size)
        p.copy_(stochastic_round(weight) if self.stochastic else weight)
