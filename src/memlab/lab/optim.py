"""The optimizer that a recipe names, built for named parameters."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from ..terms.optimizer import state
from .blocks import torchao
from .galore import GaLore
from .muon8 import Muon8

# Steps that train the two tiny models in some tens of steps; no advice for anything larger.
LEARNING_RATES = {
    "sgd": 0.2,
    "momentum": 0.1,
    "adamw": 3e-3,
    "amsgrad": 3e-3,
    "adafactor": 3e-2,
    "hf_adafactor": 3e-3,
    "lion": 1e-3,
    "muon": 3e-3,
    "adamw8bit": 3e-3,
    "adamw4bit": 3e-3,
    "adamw_fp8": 3e-3,
}
# GaLore scales its update by 0.25 (`scale`), so it wants a larger rate than AdamW.
GALORE_RATE = 1e-2

# torch.optim.Muon is for the matrices between the embedding and the output head: in our own models,
# and in those of transformers.
OURS = (".attention.", ".feed_forward.")
HIDDEN = (*OURS, ".self_attn.", ".attn.", ".mlp.", ".fc1.", ".fc2.")

# The matrices that choose experts stay with AdamW.
ROUTERS = (".mlp.gate.weight", ".router.", "shared_expert_gate")

LOOPED = ("sgd", "momentum", "adamw", "amsgrad", "adafactor", "muon")
# What torch's optimizers are told of their loop.
LOOPS: dict[str | None, dict[str, Any]] = {
    None: {},
    "forloop": {"foreach": False},
    "foreach": {"foreach": True},
    "fused": {"fused": True},
}


def optimizer(
    name: str,
    parameters: Mapping[str, Tensor],
    *,
    lr: float | None = None,
    states: Sequence[str] | None = None,
    loop: str | None = None,
) -> Optimizer:
    """The optimizer of that name for a module's named parameters.

    states      formats of its states: ("int8/128",) for Muon; None: those of the parameters
    loop        of an optimizer of torch: forloop, foreach, fused; None: its own choice
    Raises      ValueError for an unknown name, ImportError where torchao is needed and missing
    """
    if name.startswith("galore"):
        state(name, shape=(1, 1))  # refuses a name without a rank
        rate = GALORE_RATE if lr is None else lr
        rank = int(name.partition("/")[2])
        return beside_adamw(parameters, partial(GaLore, lr=rate, rank=rank), **LOOPS[loop])
    if name not in LEARNING_RATES:
        known = ", ".join(LEARNING_RATES)
        raise ValueError(f"unknown optimizer {name!r}; known: {known}, galore/<rank>")
    rate = LEARNING_RATES[name] if lr is None else lr
    all_of_them = list(parameters.values())
    told = LOOPS[loop if name in LOOPED else None]
    if name == "sgd":
        return torch.optim.SGD(all_of_them, lr=rate, **told)
    if name == "momentum":
        return torch.optim.SGD(all_of_them, lr=rate, momentum=0.9, **told)
    if name == "adamw":
        return torch.optim.AdamW(all_of_them, lr=rate, **told)
    if name == "amsgrad":
        return torch.optim.AdamW(all_of_them, lr=rate, amsgrad=True, **told)
    if name == "adafactor":
        return torch.optim.Adafactor(all_of_them, lr=rate, **told)
    if name == "hf_adafactor":
        from transformers.optimization import Adafactor  # only who asks for it needs transformers

        return Adafactor(all_of_them, lr=rate, scale_parameter=False, relative_step=False)
    if name == "lion":
        return Lion(all_of_them, lr=rate)
    if name == "muon":
        # "match_rms_adamw" scales Muon's step to AdamW's, so that one rate serves both.
        make = partial(torch.optim.Muon, lr=rate, adjust_lr_fn="match_rms_adamw")
        eight = states == ("int8/128",)
        chosen = partial(Muon8, lr=rate) if eight else make
        return beside_adamw(parameters, chosen, lr=rate, **told)
    quantized = {"adamw8bit": "AdamW8bit", "adamw4bit": "AdamW4bit", "adamw_fp8": "AdamWFp8"}
    return getattr(torchao("optim"), quantized[name])(all_of_them, lr=rate)


def beside_adamw(
    parameters: Mapping[str, Tensor],
    make: Callable[[list[Tensor]], Optimizer],
    *,
    lr: float = LEARNING_RATES["adamw"],
    **told: Any,
) -> Optimizer:
    """`make` for the matrices inside the network; AdamW for embedding, head, norms and biases.

    told        what else AdamW is to know
    """
    hidden = [p for name, p in parameters.items() if p.ndim == 2 and _is_hidden(name)]
    others = [p for p in parameters.values() if not any(p is h for h in hidden)]
    return ChainedOptimizers(make(hidden), torch.optim.AdamW(others, lr=lr, **told))


def _is_hidden(name: str) -> bool:
    """The biases of experts have two dimensions, one of them the experts; they are no matrix."""
    inside = any(part in name for part in HIDDEN) and not any(part in name for part in ROUTERS)
    return inside and not name.endswith("bias")


class ChainedOptimizers(Optimizer):
    """Several optimizers, each with parameters of its own, used as if they were one."""

    def __init__(self, *optimizers: Optimizer) -> None:
        super().__init__([group for each in optimizers for group in each.param_groups], {})
        self.optimizers = optimizers
        for each in optimizers:  # one table of states, so that whoever counts it finds them all
            each.state = self.state

    def step(self, closure: Any = None) -> Any:
        for each in self.optimizers:
            each.step()


class Lion(Optimizer):
    """Lion: move by the sign of a running mean of the gradient; the only state is that mean.

    Formula     update = sign(β1 · m + (1 - β1) · g); p -= lr · (update + decay · p);
                m = β2 · m + (1 - β2) · g
    Source      Chen et al. 2023, arXiv:2302.06675, algorithm 2
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-4,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        for group in self.param_groups:
            (beta1, beta2), lr = group["betas"], group["lr"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                if p not in self.state:
                    self.state[p]["exp_avg"] = torch.zeros_like(p)
                mean = self.state[p]["exp_avg"]
                update = mean.lerp(p.grad, 1 - beta1).sign_()
                p.mul_(1 - lr * group["weight_decay"]).add_(update, alpha=-lr)
                mean.lerp_(p.grad, 1 - beta2)
