"""DTensors that answer for their device, so that autograd need not ask for the stream of a card.

Autograd asks each gradient for its device. A tensor without values sends that to the modes of the
rehearsal; a DTensor, which is made in C++, knows by itself that it is on a card, and autograd then
asks for that card's stream, of which this torch has none. So each is made in the other way that
torch has for tensors around tensors: with the question sent on.

Source      PyTorch 2.13: torch/distributed/tensor/_api.py, DTensor.__new__;
            torch.Tensor._make_wrapper_subclass; aten/src/ATen/DeviceAccelerator.cpp
"""

import sys
from typing import Any

import torch

from .undo import Changes


def kind() -> Any:
    """DTensor, where somebody imported it."""
    home = sys.modules.get("torch.distributed.tensor._api")
    return getattr(home, "DTensor", None)


def divided(changes: Changes) -> None:
    """Let every DTensor that is made in Python answer."""
    dtensor = kind()
    if dtensor is None:
        return

    def make(cls: Any, local_tensor: Any, spec: Any, *, requires_grad: bool) -> Any:
        return made(cls, local_tensor, spec, requires_grad)

    changes.replace(dtensor, "__new__", staticmethod(make))


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


def answering(result: Any, given: Any) -> Any:
    """What an operator made in C++, answering; what it was given stays what it is."""
    if isinstance(result, (list, tuple)):
        return type(result)(answering(each, given) for each in result)
    if type(result) is not kind() or any(result is each for each in given):
        return result
    return made(type(result), result._local_tensor, result._spec, result.requires_grad)
