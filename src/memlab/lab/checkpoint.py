"""Checkpointing small enough to read: keep a region's input, compute the rest again in backward.

Here a *checkpoint* is an activation that is kept on purpose. Between two of them lies a region;
what it computed is dropped, and made once more when backward arrives there.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts

from .models import TinyGPT, TinyLlama

# A way calls a region: way(function, x, *more) returns function(x, *more) and keeps what it likes.
Way = Callable[..., Tensor]

aten = torch.ops.aten
MATMULS = (aten.mm.default, aten.addmm.default)
# Each is what scaled_dot_product_attention calls on one kind of device.
ATTENTION = (
    aten._scaled_dot_product_flash_attention_for_cpu.default,
    aten._scaled_dot_product_flash_attention.default,
    aten._scaled_dot_product_efficient_attention.default,
    aten._scaled_dot_product_cudnn_attention.default,
)


class Recompute(torch.autograd.Function):
    """A region whose forward pass leaves its input alone, and whose backward pass runs it again.

    Shapes      x: the input, which asks for a gradient; more: what the region takes besides
    Source      Chen et al. 2016, arXiv:1604.06174; torch's checkpoint(use_reentrant=True)
    Leaves out  gradients of `more`; autocast; random numbers that are not the CPU's
    """

    @staticmethod
    def forward(ctx: Any, function: Callable[..., Tensor], x: Tensor, *more: Any) -> Tensor:
        ctx.function, ctx.more = function, more
        ctx.random = torch.get_rng_state()  # dropout must draw the same mask twice
        ctx.save_for_backward(x)
        return function(x, *more)  # inside a Function nothing is recorded, so nothing is kept

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple:
        (x,) = ctx.saved_tensors
        x = x.detach().requires_grad_()  # a graph of its own, which ends at this region's input
        now = torch.get_rng_state()
        torch.set_rng_state(ctx.random)
        with torch.enable_grad():
            y = ctx.function(x, *ctx.more)
        torch.set_rng_state(now)
        torch.autograd.backward(y, gradients)  # the weights' gradients arrive on the way
        return None, x.grad, *(None for _ in ctx.more)


def plain(function: Callable[..., Tensor], x: Tensor, *more: Any) -> Tensor:
    """The way without checkpointing: call it, and let autograd keep what it wants."""
    return function(x, *more)


def again(function: Callable[..., Tensor], x: Tensor, *more: Any) -> Tensor:
    """The way of this page: keep x, compute the region again in backward.

    Raises      ValueError where x asks for no gradient, as then no weight inside would get one
    """
    if torch.is_grad_enabled() and not x.requires_grad:
        raise ValueError("the input asks for no gradient, so nothing would call the region again")
    return Recompute.apply(function, x, *more)


def keeping(*operators: Any, early_stop: bool = True) -> Way:
    """A way that keeps, besides x, the results of these operators: no operator, no result.

    operators   such as *MATMULS; whatever is not listed is computed again
    early_stop  end the second forward pass at the last tensor that backward asks for
    Source      torch.utils.checkpoint, create_selective_checkpoint_contexts, use_reentrant=False
    """
    more: dict[str, Any] = {"use_reentrant": False, "early_stop": early_stop}
    if operators:
        more["context_fn"] = partial(create_selective_checkpoint_contexts, list(operators))
    return partial(checkpoint, **more)


class Region(nn.Module):
    """Some layers in a row, called as one by a way."""

    def __init__(self, layers: Iterable[nn.Module], way: Way) -> None:
        super().__init__()
        self.layers, self.way = nn.ModuleList(layers), way

    def forward(self, x: Tensor, *more: Any) -> Tensor:
        return self.way(self.run, x, *more)

    def run(self, x: Tensor, *more: Any) -> Tensor:
        for layer in self.layers:
            x = layer(x, *more)
        return x


def regroup(net: TinyLlama | TinyGPT, plan: Iterable[tuple[int, Way]]) -> TinyLlama | TinyGPT:
    """Cut a model's layers into regions; returns the model, with the same weights in it.

    plan        (layers, way) for each region in order: [(1, again)] * L is every block by itself,
                [(3, again)] * (L // 3) segments of three, [(1, again), (1, plain)] * (L // 2)
                every second block
    Raises      ValueError for a plan that has more or fewer layers than the model
    """
    plan = list(plan)
    layers: list[nn.Module] = []
    for part in net.layers:  # a model that was cut before is put together again
        layers += part.layers if isinstance(part, Region) else [part]
    sizes = [size for size, _ in plan]
    if sum(sizes) != len(layers) or min(sizes) < 1:
        raise ValueError(f"regions of {sizes} layers do not make the {len(layers)} of the model")
    left = iter(layers)
    net.layers = nn.ModuleList(Region([next(left) for _ in range(size)], way) for size, way in plan)
    return net


__all__ = ["ATTENTION", "MATMULS", "Recompute", "Region", "again", "keeping", "plain", "regroup"]
