"""Losses of one number that keep the storage of one number for each element.

They are computed element by element into the result, which is then made smaller: its storage stays
as it was for as long as somebody holds the loss. torch does not say so of tensors without values.

Source      PyTorch 2.13: aten/src/ATen/native/Loss.cpp, mse_loss_out, smooth_l1_loss_out,
            soft_margin_loss_out; Loss.cpp and cuda/Loss.cu, binary_cross_entropy
Leaves out  a second tensor of that size inside mse_loss and smooth_l1_loss, while they run
"""

from typing import Any

import torch

aten = torch.ops.aten
NONE = 0  # torch's number for reduction="none"
REDUCTION = {  # where it stands among the arguments
    aten.mse_loss.default: 2,
    aten.smooth_l1_loss.default: 2,
    aten.soft_margin_loss.default: 2,
    aten.binary_cross_entropy.default: 3,
}


def losses() -> dict[Any, Any]:
    """The code of each of them."""
    return {func: _code(place) for func, place in REDUCTION.items()}


def _code(place: int) -> Any:
    def code(given: Any, target: Any, *rest: Any, **named: Any) -> Any:
        reduction = named.get("reduction", rest[place - 2] if len(rest) > place - 2 else 1)
        every = torch.empty(
            torch.broadcast_shapes(given.shape, target.shape),
            dtype=torch.result_type(given, target),
            device=given.device,
        )
        return every if reduction == NONE else every.as_strided((), ())

    return code
