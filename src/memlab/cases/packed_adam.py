"""Adam whose states, and a second copy of the weights, are codes; it steps a few rows at a time.

Letters     R rows, C columns of a parameter; a vector counts as one row
"""

from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from ..formats import format_of
from ..lab.quantize import Quantized, dequantize, quantize

NOTHING = 1e-20  # a block of zeros has no scale; this one is a block of nearly nothing
Packed = list[Quantized]  # one for each few rows


class PackedAdam(Optimizer):
    """Adam between whose steps there are only codes and scales; a step gives the gradients back.

    Formula     m = b1 · m + (1 - b1) · g; v = b2 · v + (1 - b2) · g²; w -= lr · m̂ / (√v̂ + eps)
    states      format of m and of √v, such as int8/row or nvfp4; √v, since evenly spaced codes
                would round the small values of v to zero
    weights     format of a packed copy of the weights, or None for no such copy
    rows        rows of a matrix that are written out at a time; 0: all of them
    start       what the update starts from: "wide", the parameter; "packed", its packed copy, so
                that a step which the codes round away is lost
    Shapes      state: "exp_avg", "exp_avg_sq" and "packed", each a list of Quantized, one for each
                `rows`
    Unit        n values of int8/row: n + 4 · R bytes; of nvfp4: n / 2 + n / 16, and 4 for each part
    Leaves out  weight decay
    Raises      ValueError for a negative number of rows, and as `quantize` does
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        *,
        states: str = "int8/row",
        weights: str | None = "nvfp4",
        rows: int = 8,
        start: str = "wide",
    ) -> None:
        if rows < 0:
            raise ValueError(f"rows={rows}; at least 1, or 0 for all at once, is needed")
        if start not in ("wide", "packed") or (start == "packed" and not weights):
            raise ValueError(
                f"start={start!r} with weights={weights!r}; wide, or packed with a copy"
            )
        super().__init__(params, {"lr": lr, "betas": (0.9, 0.999), "eps": 1e-8})
        self.formats, self.rows, self.steps = (states, weights), rows, 0
        self.from_packed = start == "packed"
        self.half = 0.5 / (127 if format_of(states).bits == 8 else 6)  # half a step of the codes
        for p in (p for group in self.param_groups for p in group["params"]):
            parts = self._parts(p.detach())
            zeros = [quantize(torch.full(part.shape, NOTHING), states) for part in parts]
            self.state[p]["exp_avg"] = zeros
            self.state[p]["exp_avg_sq"] = [copied(one) for one in zeros]
            if weights:
                self.state[p]["packed"] = [quantize(part, weights) for part in parts]

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        self.steps += 1
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    self._update(p, p.grad, group)
                    p.grad = None  # given back one by one, as the program does

    def _update(self, p: Tensor, grad: Tensor, group: dict[str, Any]) -> None:
        """New codes beside the old ones: both are there until the whole parameter is done."""
        state, (states, weights) = self.state[p], self.formats
        new: dict[str, Packed] = {name: [] for name in state}
        parts = zip(self._parts(p), self._parts(grad), *(state[n] for n in state), strict=True)
        for w, g, m, v, *packed in parts:
            mean, root = self._moments(g.float(), m, v, group["betas"])
            if self.from_packed:
                w.copy_(dequantize(packed[0], w.dtype))
            w.copy_(self._stepped(w, mean, root, group))
            new["exp_avg"].append(quantize(mean.add_(NOTHING), states))
            new["exp_avg_sq"].append(quantize(root, states))
            if weights:
                new["packed"].append(quantize(w, weights))
        state.update(new)

    def _moments(
        self, g: Tensor, m: Quantized, v: Quantized, betas: tuple[float, float]
    ) -> tuple[Tensor, Tensor]:
        mean = dequantize(m, torch.float32).lerp_(g, 1 - betas[0])
        square = dequantize(v, torch.float32).square_().mul_(betas[1])
        return mean, square.addcmul_(g, g, value=1 - betas[1]).sqrt_().add_(NOTHING)

    def _stepped(self, w: Tensor, mean: Tensor, root: Tensor, group: dict[str, Any]) -> Tensor:
        first, second = (1 - beta**self.steps for beta in group["betas"])
        # A root that its codes round to zero is half a step of them at most, not nothing.
        floor = root.amax(-1, keepdim=True) * self.half
        size = root.maximum(floor).div_(second**0.5).add_(group["eps"])
        return w.float().addcdiv_(mean, size, value=-group["lr"] / first)

    def _parts(self, tensor: Tensor) -> tuple[Tensor, ...]:
        matrix = tensor.view(-1, tensor.shape[-1])
        return matrix.split(self.rows or len(matrix))


def copied(packed: Quantized) -> Quantized:
    """The same codes and scales, in memory of their own."""
    factor = None if packed.factor is None else packed.factor.clone()
    return Quantized(packed.format, packed.codes.clone(), packed.scales.clone(), factor)


__all__ = ["PackedAdam", "copied"]
