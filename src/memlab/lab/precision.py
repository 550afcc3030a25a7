"""The extra copies of mixed-precision training: fp32 master weights and fp32 gradient sums.

torch.optim updates the tensors that it is given, in their own format. This puts wider copies beside
narrow parameters, as Megatron-LM and DeepSpeed do, in as few lines as it takes.
"""

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from ..recipe import Recipe


class Copies:
    """What a recipe keeps beside the parameters of a module and their gradients.

    master      fp32 copies that the optimizer updates in the parameters' place, because a bf16
                weight loses any change below about 1/256 of it; {} where the recipe has none
    sums        fp32 buffers to which each gradient is added as soon as backward has made it; {}
                where the recipe has none. Beside an `accumulator` the narrow gradient stays in
                `.grad`; where the buffer is the gradient (`gradients`), it is dropped at once
    Source      Micikevicius et al. 2018, arXiv:1710.03740, section 3.1; Megatron-LM, `main_grad`
    """

    def __init__(self, module: nn.Module, recipe: Recipe) -> None:
        self.parameters = dict(module.named_parameters())
        self.master: dict[str, Tensor] = {}
        self.sums: dict[str, Tensor] = {}
        self._keep_narrow = recipe.accumulator is not None
        if recipe.master:
            self.master = {n: p.detach().float().clone() for n, p in self.parameters.items()}
        if recipe.accumulator or recipe.gradients not in (None, recipe.weights):
            for name, parameter in self.parameters.items():
                self.sums[name] = torch.zeros_like(parameter.detach(), dtype=torch.float32)
                parameter.register_post_accumulate_grad_hook(self._adder(name))

    @property
    def updated(self) -> dict[str, Tensor]:
        """What the optimizer is to update, by name."""
        return self.master or dict(self.parameters)

    def start_step(self) -> None:
        """Forget the gradients of the step before."""
        for total in self.sums.values():
            total.zero_()
        for parameter in self.parameters.values():
            parameter.grad = None

    def start_micro_batch(self) -> None:
        """Let the next narrow gradient begin from nothing where the sum has the last one."""
        for name in self.sums:
            self.parameters[name].grad = None

    def step(self, optimizer: Optimizer) -> None:
        """Hand over the gradients, update, and round an updated master into its parameter."""
        for name, parameter in self.parameters.items():
            gradient = self.sums.get(name, parameter.grad)
            assert gradient is not None, f"{name} has no gradient"
            if self.master:
                self.master[name].grad = gradient.float()  # a new tensor, unless it is fp32
            elif self.sums and parameter.grad is not None:
                parameter.grad.copy_(gradient)
        optimizer.step()
        for name, copy in self.master.items():
            self.parameters[name].detach().copy_(copy)
            copy.grad = None

    def _adder(self, name: str):
        def add(parameter: Tensor) -> None:
            assert parameter.grad is not None
            self.sums[name].add_(parameter.grad)
            if not self._keep_narrow:
                parameter.grad = None

        return add
