"""What a program asks of one tensor, and a tensor without values cannot answer by itself.

Source      PyTorch 2.13: torch/_tensor.py and torch/_subclasses/fake_tensor.py
"""

import sys
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import (
    FakeTensor,
    FakeTensorMode,
    unset_fake_temporarily,
)
from torch.overrides import TorchFunctionMode

from .assumed import Assumed
from .undo import Changes
from .values import Values


def address(tensor: Tensor) -> int:
    """An address that no other storage has: libraries know weights by it again (accelerate).

    None where a tensor is copied: torch would copy the storage past the tracker.
    """
    if sys._getframe(1).f_code.co_name == "__deepcopy__":
        return 0
    return tensor.untyped_storage()._cdata + tensor.storage_offset() * tensor.itemsize


def methods(changes: Changes, values: Values, assumed: Assumed) -> None:
    """Let tensors without values answer."""

    def ones(tensor: Tensor, name: str) -> Any:
        assumed.note("{name}() of values that are not known: ones", name=name)
        kind: Any = float if tensor.is_floating_point() else int
        kind = bool if tensor.dtype == torch.bool else kind
        return np.ones(tuple(tensor.shape), dtype=kind)

    def tolist(tensor: Tensor) -> Any:
        known = values.of(tensor)
        if known is None:
            return ones(tensor, "tolist").tolist()
        with unset_fake_temporarily():
            return known.tolist()

    def numpy(tensor: Tensor, **_: Any) -> Any:
        known = values.of(tensor)
        if known is None:
            return ones(tensor, "numpy").astype(np.float32)
        with unset_fake_temporarily():
            return known.numpy()

    def formatted(tensor: Tensor, how: str) -> str:
        return format(tensor.item(), how) if tensor.dim() == 0 else object.__format__(tensor, how)

    def get_data(tensor: Tensor) -> Tensor:
        return Tensor.data.__get__(tensor)  # type: ignore[attr-defined]

    def set_data(tensor: Tensor, new: Tensor) -> None:
        """`.data = x` of another device moves a tensor: FSDP2 moves its shards so."""
        Tensor.data.__set__(tensor, new)  # type: ignore[attr-defined]
        if isinstance(new, FakeTensor):
            tensor.fake_device = new.fake_device  # type: ignore[attr-defined]
        known = values.of(new)
        if known is None:
            values.forget(tensor)
        else:
            values.say(tensor, known)

    own = {"tolist": tolist, "numpy": numpy, "data_ptr": address, "__format__": formatted}
    for name, value in own.items():
        changes.replace(FakeTensor, name, value)
    changes.replace(FakeTensor, "data", property(get_data, set_data))
    # A tensor that is copied copies what it knows, and its mode knows storages by their address:
    # of a copy of these, Python would free each a second time.
    changes.replace(FakeTensorMode, "__deepcopy__", lambda mode, _: mode)
    changes.replace(Tensor, "pin_memory", lambda tensor, *_, **__: tensor)
    changes.replace(Tensor, "is_pinned", lambda *_, **__: False)
    changes.replace(Tensor, "record_stream", lambda *_: None)


class Calls(TorchFunctionMode):
    """Calls that torch reads in C++, made readable: devices that are numbers, lists of numbers.

    number      of the rank's own card, which is cuda:0
    """

    def __init__(self, assumed: Assumed, number: int = 0) -> None:
        super().__init__()
        self.assumed, self.number = assumed, number

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if self.number:
            if func is torch.device and type(args[0] if args else "") is not int:
                return _own((func(*args, **kwargs),), self.number)[0]
            args = _own(args, self.number)
            if "device" in kwargs:
                (kwargs["device"],) = _own((kwargs["device"],), self.number)
        if type(kwargs.get("device")) is int:
            kwargs["device"] = torch.device("cuda", kwargs["device"])
        if func in NUMBERED and len(args) == NUMBERED[func] and type(args[-1]) is int:
            args = (*args[:-1], torch.device("cuda", 0 if args[-1] == self.number else args[-1]))
            if func is torch.device:
                return args[0]
        elif func in RECURRENT and args[0].is_cuda:
            self.assumed.note("a recurrent layer: PyTorch's own cells; cuDNN's keep other tensors")
        elif func is torch.tensor and args and isinstance(args[0], (list, tuple)):
            args = (_plain(args[0]), *args[1:])
        return func(*args, **kwargs)


# Functions that take the number of a device alone: how many arguments they have then.
RECURRENT = (torch.lstm, torch.gru, torch.rnn_tanh, torch.rnn_relu)
NUMBERED = {torch.device: 1, Tensor.to: 2, Tensor.cuda: 2}


def _own(args: Any, number: int) -> Any:
    """Arguments in which a rank's own card is cuda:0."""
    own, first = torch.device("cuda", number), torch.device("cuda", 0)
    named = str(own)
    return tuple(
        first
        if (type(each) is torch.device and each == own) or (type(each) is str and each == named)
        else each
        for each in args
    )


def _plain(thing: Any) -> Any:
    if isinstance(thing, (list, tuple)):
        return [_plain(each) for each in thing]
    if isinstance(thing, Tensor):
        return thing.item() if thing.dim() == 0 else thing.tolist()
    return thing


def numbered_modules(changes: Changes, number: int) -> None:
    """module.to(0), which is read past any function mode."""
    parse = torch._C._nn._parse_to

    def parsed(*args: Any, **kwargs: Any) -> Any:
        if args and type(args[0]) is int:
            args = (torch.device("cuda", args[0]), *args[1:])
        if number:
            args = _own(args, number)
        return parse(*args, **kwargs)

    changes.replace(torch._C._nn, "_parse_to", parsed)
