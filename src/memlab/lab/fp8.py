"""FP8 autocast in one sitting: linear layers that multiply in eight bits, and what they keep.

Letters     T rows of the input (all tokens of the batch), C inputs, O outputs of a linear layer

A linear layer multiplies three times: y = x · Wᵀ on the way forward, g · W and gᵀ · x on the way
back, where g is the gradient of y. Each factor is divided by a scale, so that its largest value
becomes the format's largest, and rounded to FP8: e4m3 (finer) for x and W, e5m2 (wider) for g. The
weights stay as wide as they were.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakTensorKeyDictionary

from .scaled_mm import quick_on_a_cpu, scaled_mm

E4M3, E5M2 = torch.float8_e4m3fn, torch.float8_e5m2
Scaled = tuple[Tensor, Tensor]  # values in FP8, and the fp32 scale to multiply them with

SCALING = ("tensor", "row")
KEEP = ("original", "fp8", "fp8+weight")


@dataclass(frozen=True)
class FP8Recipe:
    """How to scale, and what a linear layer keeps for its backward pass.

    scaling     "tensor": one scale each; "row": one for each row or column that a product adds up
    keep        "original": the input as it came, to be cast again (torchao's way); "fp8": its cast
                copy; "fp8+weight": that and the weight's cast copy (Transformer Engine's way)
    share       layers that read one input (q, k and v) keep one cast copy of it together
    emulate     multiply the rounded values in fp32, without torch._scaled_mm
    Raises      ValueError for another word
    """

    scaling: str = "tensor"
    keep: str = "fp8"
    share: bool = True
    emulate: bool = False

    def __post_init__(self) -> None:
        for name, known in (("scaling", SCALING), ("keep", KEEP)):
            if (value := getattr(self, name)) not in known:
                raise ValueError(f"{name}={value!r} is unknown; known: {', '.join(known)}")

    def cast(self, x: Tensor, along: int, dtype: torch.dtype = E4M3) -> Scaled:
        """x [R, S] in FP8; with scaling by row, values that lie `along` an axis share a scale."""
        return cast(x, dtype, along if self.scaling == "row" else None)


@torch.no_grad()  # or autograd would keep the fp32 quotient: more than the cast can save
def cast(x: Tensor, dtype: torch.dtype = E4M3, along: int | None = None) -> Scaled:
    """Round x to FP8 and return (values, scale) with x ≈ values · scale.

    Formula     scale = max |x| / largest value of dtype, over all of x or along one axis
    Shapes      x [R, S]; scale [], [R, 1] for along=-1 or [1, S] for along=0, in fp32
    Source      Micikevicius et al. 2022, arXiv:2209.05433, section 3
    """
    largest = torch.finfo(dtype).max
    most = x.abs().amax() if along is None else x.abs().amax(along, keepdim=True)
    scale = (most.float() / largest).clamp(min=1e-12)
    # A quotient may round to a little more than the largest value: e5m2 would make it infinite.
    return (x.float() / scale).clamp(-largest, largest).to(dtype), scale


def product(a: Scaled, b: Scaled, dtype: torch.dtype, *, emulate: bool = False) -> Tensor:
    """a [M, K] times b [K, N]: by torch._scaled_mm where it can, in fp32 where it cannot."""
    (a8, a_scale), (b8, b_scale) = a, b
    if emulate or not kernel_takes(a8, b8):
        return scaled_mm(a8, b8, a_scale, b_scale, out_dtype=dtype)
    quick_on_a_cpu()
    # The tensor cores of Ada and Hopper read the first factor by rows, the second by columns.
    by_rows, by_columns = a8.contiguous(), b8.t().contiguous().t()
    return torch._scaled_mm(by_rows, by_columns, a_scale, b_scale, out_dtype=dtype)


def kernel_takes(a: Tensor, b: Tensor) -> bool:
    """Whether torch._scaled_mm multiplies [M, K] by [K, N] here: K and N multiples of 16, and a
    GPU of compute capability 8.9 or more, or a CPU."""
    able = a.device.type == "cpu"
    if a.device.type == "cuda":
        able = torch.cuda.get_device_capability(a.device) >= (8, 9)
    return able and not any(side % 16 for side in b.shape)


class autocast(TorchFunctionMode):  # noqa: N801, the name that torch gives its own
    """Inside `with autocast(recipe):` every F.linear multiplies in FP8, unless `skip` says no.

    Example     with autocast(FP8Recipe(keep="original")): loss = net(ids, ids)
    skip        of a weight: whether its layer stays as it is, such as an output head
    Leaves out  layers that do not call F.linear; torch.autocast around it; steps in which a
                checkpoint computes again, since modes are not active there
    """

    def __init__(
        self, recipe: FP8Recipe | None = None, *, skip: Callable[[Tensor], bool] | None = None
    ) -> None:
        super().__init__()
        self.recipe, self.skip = recipe or FP8Recipe(), skip or (lambda weight: False)
        self.copies = WeakTensorKeyDictionary()  # of inputs; each goes with its input

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is not F.linear:
            return func(*args, **kwargs)
        return self.linear(*args, **kwargs)

    def linear(self, input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        if self.skip(weight):
            return F.linear(input, weight, bias)
        y = _Linear.apply(input, weight, self.recipe, self.copy_of(input))
        return y if bias is None else y + bias

    def copy_of(self, x: Tensor) -> tuple[Scaled, Scaled]:
        """x for y = x · Wᵀ, and for gᵀ · x, which adds up along the other axis."""
        version, copies = self.copies.get(x, (None, None))
        if version != x._version:  # new, or written to since
            rows, recipe = x.flatten(0, -2), self.recipe
            forward = recipe.cast(rows, -1)
            kept = forward if recipe.scaling == "tensor" else recipe.cast(rows, 0)
            copies = forward, kept
            if recipe.share and recipe.keep != "original":  # where x is kept, so would they be
                self.copies[x] = x._version, copies
        return copies


class _Linear(torch.autograd.Function):
    """y = x · Wᵀ with all three products in FP8."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, recipe: FP8Recipe, copies: Any) -> Tensor:
        of_x, later = copies
        values, scale = recipe.cast(weight, -1)
        y = product(of_x, (values.t(), scale.t()), x.dtype, emulate=recipe.emulate)
        kept: tuple[Tensor, ...] = (x,) if recipe.keep == "original" else later
        if recipe.keep == "fp8+weight":
            kept += (values, scale) if recipe.scaling == "tensor" else recipe.cast(weight, 0)
        else:
            kept += (weight,)
        ctx.save_for_backward(*kept)
        ctx.recipe, ctx.dtype = recipe, weight.dtype
        return y.unflatten(0, x.shape[:-1])

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        recipe, saved = ctx.recipe, ctx.saved_tensors
        of_x = recipe.cast(saved[0].flatten(0, -2), 0) if recipe.keep == "original" else saved[:2]
        of_weight = saved[-2:] if recipe.keep == "fp8+weight" else recipe.cast(saved[-1], 0)
        rows = g.flatten(0, -2)
        of_g = recipe.cast(rows, -1, E5M2)
        to_x = product(of_g, of_weight, g.dtype, emulate=recipe.emulate)
        turned = (of_g[0].t(), of_g[1])
        if recipe.scaling == "row":
            turned = recipe.cast(rows.t(), -1, E5M2)
        to_weight = product(turned, of_x, ctx.dtype, emulate=recipe.emulate)
        return to_x.unflatten(0, g.shape[:-1]), to_weight, None, None


__all__ = ["FP8Recipe", "autocast", "cast", "kernel_takes", "product"]
