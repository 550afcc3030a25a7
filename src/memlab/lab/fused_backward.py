"""The optimizer's step inside backward: a weight is updated as soon as its gradient is complete.

A gradient lives from the moment it is made until `zero_grad`. Taken one at a time, right where they
are made, gradients never pile up.
"""

from collections.abc import Callable, Iterable

from torch import Tensor
from torch.optim import Optimizer

from .optim import ChainedOptimizers


def step_in_backward(
    parameters: Iterable[Tensor], make: Callable[[list[Tensor]], Optimizer]
) -> ChainedOptimizers:
    """Give each parameter an optimizer of its own, which steps during backward.

    make        builds an optimizer for a list of parameters, such as torch.optim.AdamW
    Returns     all of them as one; its step() finds no gradients and does nothing
    Formula     gradients alive: one at a time instead of all, G -> the largest of them
    Source      PyTorch's tutorial "How to save memory by fusing the optimizer step into the
                backward pass"; Lv et al. 2023, LOMO, arXiv:2306.09782
    Leaves out  whatever needs all gradients at once or adds to them: clipping by their global norm,
                loss scaling that may skip a step, accumulation (each backward is a step here)
    Raises      ValueError where no parameter asks for a gradient
    """
    each = {p: make([p]) for p in parameters if p.requires_grad}
    if not each:
        raise ValueError("no parameter asks for a gradient, so none would ever be updated")

    def update(parameter: Tensor) -> None:
        each[parameter].step()
        parameter.grad = None

    for parameter in each:
        # Called once for each backward pass, when all that was to be added has been: also for a
        # weight that is used in two places.
        parameter.register_post_accumulate_grad_hook(update)
    return ChainedOptimizers(*each.values())
