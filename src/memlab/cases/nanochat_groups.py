"""Who updates which parameters of NanoChat, in which format, and what that keeps between steps.

Source      github.com/karpathy/nanochat, commit 2c062aa: GPT.num_scaling_params, setup_optimizer
            and nanochat/optim.py; facts of grouping and of states, the code here is ours
"""

from collections import Counter
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from ..lab.muon8 import orthogonal
from .nanochat import NanoChat

ADAM_BETAS = (0.8, 0.95)
MOMENTUM, SECOND = 0.95, 0.95
SMALL = 1024  # values; smaller states are kept whole on every GPU


def groups(net: NanoChat) -> dict[str, list[nn.Parameter]]:
    """All parameters, in nanochat's five groups; the gates of the values are among the matrices."""
    return {
        "transformer_matrices": list(net.layers.parameters()),
        "lm_head": list(net.lm_head.parameters()),
        "wte": list(net.wte.parameters()),
        "value_embeds": list(net.value_embeds.parameters()),
        "scalars": [net.resid_lambdas, net.x0_lambdas],
    }


def state_bytes(net: NanoChat, gpus: int = 1) -> dict[str, int]:
    """Bytes of the optimizer's states of each group, on each of the GPUs, after the first step.

    Formula     matrices, Muon: for K of one shape [R, C] b · ceil(K / gpus) · (R·C + max(R, C));
                the rest, AdamW: 2 · b · n / gpus, and not divided below 1,024 values
    Shapes      b of the parameter, for a state is made in its format; a momentum and the mean
                square of each row or column
    Unit        bytes, a whole number
    Source      nanochat/optim.py, MuonAdamW and DistMuonAdamW
    Leaves out  step counters, which are numbers of Python here
    Raises      ValueError for fewer than one GPU, or for a number that does not divide a table
    """
    if gpus < 1 or net.shape.vocab % gpus:
        raise ValueError(f"gpus={gpus}; a divisor of the {net.shape.vocab:,} rows is needed")
    of = groups(net)
    found = {}
    for name, params in of.items():
        if name == "transformer_matrices":
            many = Counter(p.shape for p in params)
            each = {p.shape: p.element_size() * (p.numel() + max(p.shape)) for p in params}
            found[name] = sum(-(-many[shape] // gpus) * each[shape] for shape in many)
        else:
            parts = [p.numel() // (gpus if p.numel() >= SMALL else 1) for p in params]
            found[name] = sum(2 * p.element_size() * n for p, n in zip(params, parts, strict=True))
    return found


class MuonAdamW(Optimizer):
    """Muon for the matrices, AdamW for all else, each state in its parameter's format.

    Formula     Muon: m += 0.05 · (g - m); u = orthogonal(g + 0.95 · (m - g)), each row or column
                of u divided by the root of its running mean square and all scaled back; w -= lr · u
    Source      Jordan et al. 2024 (Muon); Li et al. 2025, arXiv:2510.05491 (the running squares)
    Changes     one matrix after the other, where nanochat stacks those of a shape; five rounds of
                Muon's own polynomial for Polar Express, in fp32 and not in bf16, which takes a CPU
            without bf16 products 30 times as long; no weight decay
    Example     MuonAdamW(groups(net))
    """

    def __init__(self, of: dict[str, list[nn.Parameter]], *, lr: float = 0.02) -> None:
        made = [
            {"params": params, "muon": name == "transformer_matrices"}
            for name, params in of.items()
        ]
        super().__init__(made, {"lr": lr, "muon": False})

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        for group in self.param_groups:
            update = _muon if group["muon"] else _adamw
            for p in group["params"]:
                if p.grad is not None:
                    update(p, p.grad, self.state[p], group["lr"])
        return None


def _muon(p: Tensor, g: Tensor, state: dict[str, Any], lr: float) -> None:
    rows, columns = p.shape
    along = 1 if rows >= columns else 0  # the shorter side is averaged, the longer one kept
    if not state:
        state["momentum"] = torch.zeros_like(p)
        state["squares"] = p.new_zeros((rows, 1) if along else (1, columns))
    m, squares = state["momentum"], state["squares"]
    m.lerp_(g, 1 - MOMENTUM)
    u = orthogonal(g.lerp(m, MOMENTUM), torch.float32).to(p.dtype)
    before = u.norm()
    squares.lerp_(u.square().mean(along, keepdim=True), 1 - SECOND)
    u = u * squares.clamp(min=1e-10).rsqrt()
    p.sub_(u * (before / u.norm().clamp(min=1e-10)), alpha=lr * max(1, rows / columns) ** 0.5)


def _adamw(p: Tensor, g: Tensor, state: dict[str, Any], lr: float) -> None:
    if not state:
        state.update(step=0, mean=torch.zeros_like(p), squares=torch.zeros_like(p))
    state["step"] += 1
    first, second = ADAM_BETAS
    state["mean"].lerp_(g, 1 - first)
    state["squares"].lerp_(g.square(), 1 - second)
    size = (state["squares"] / (1 - second ** state["step"])).sqrt() + 1e-10
    p.sub_(state["mean"] / size, alpha=lr / (1 - first ** state["step"]))


__all__ = ["MuonAdamW", "groups", "state_bytes"]
