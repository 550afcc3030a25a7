"""DTensors that answer for their device, so that autograd need not ask for the stream of a card.

Autograd asks each gradient for its device. A tensor without values sends that to the modes of the
rehearsal; a DTensor, which is made in C++, knows by itself that it is on a card, and autograd then
asks for that card's stream, of which this torch has none. So each is made in the other way that
torch has for tensors around tensors: with the question sent on.

Tensors whose collective is on its way are left to torch, which would wait for each at once where it
believes to be traced, as it does among tensors without values.

Source      PyTorch 2.13: torch/distributed/tensor/_api.py, DTensor.__new__;
            torch/distributed/_functional_collectives.py, AsyncCollectiveTensor, _are_we_tracing;
            torch.Tensor._make_wrapper_subclass; aten/src/ATen/DeviceAccelerator.cpp
"""

import sys
from typing import Any

import torch

from ..measure.fake_cuda.undo import Changes

DTENSOR = "torch.distributed.tensor._api", "DTensor"
ON_ITS_WAY = "torch.distributed._functional_collectives", "AsyncCollectiveTensor"


def kinds() -> tuple[Any, ...]:
    """Tensors around tensors, as far as somebody imported them."""
    found = (getattr(sys.modules.get(home), name, None) for home, name in (DTENSOR, ON_ITS_WAY))
    return tuple(each for each in found if each is not None)


def divided(changes: Changes) -> None:
    """Let every DTensor answer, and let no collective be waited for before its time."""

    def dtensor(cls: Any, local_tensor: Any, spec: Any, *, requires_grad: bool) -> Any:
        return made(cls, local_tensor, spec, requires_grad)

    for kind in kinds():
        if kind.__name__ == DTENSOR[1]:
            changes.replace(kind, "__new__", staticmethod(dtensor))
    home = sys.modules.get(ON_ITS_WAY[0])
    traced = getattr(home, "_are_we_tracing", None)
    if traced is not None:
        changes.everywhere(traced, lambda: False)


def wraps() -> dict[Any, Any]:
    """The operator that makes one on its way, as its code is; torch's shapes make a new tensor."""
    home = sys.modules.get(ON_ITS_WAY[0])
    wrap = getattr(torch.ops._c10d_functional, "_wrap_tensor_autograd", None)
    if home is None or wrap is None:
        return {}
    return {wrap.default: lambda tensor: home.AsyncCollectiveTensor(tensor)}


def made(cls: Any, local: Any, spec: Any, requires_grad: bool) -> Any:
    """A DTensor around a local tensor."""
    whole = spec.tensor_meta
    found = torch.Tensor._make_wrapper_subclass(
        cls,
        whole.shape,
        strides=whole.stride,
        dtype=local.dtype,
        device=local.device,
        layout=local.layout,
        requires_grad=requires_grad,
        dispatch_device=True,
    )
    found._spec, found._local_tensor = spec, local
    return found


def device_of(tensor: Any) -> torch.device:
    """The device of what is inside."""
    inside = tensor.elem if hasattr(tensor, "elem") else tensor._local_tensor
    return inside.device  # type: ignore[no-any-return]


def answering(result: Any, given: Any) -> Any:
    """What an operator made in C++, answering; what it was given stays what it is."""
    if isinstance(result, (list, tuple)):
        return type(result)(answering(each, given) for each in result)
    if not hasattr(result, "_local_tensor") or any(result is each for each in given):
        return result
    return made(type(result), result._local_tensor, result._spec, result.requires_grad)
