"""What was alive before a block began, and never came up in it: memory that no operator names.

A state dict that somebody keeps, a second model, a cache: made early, then only held. A tracker
sees a storage from its first use on, so it never sees these. Python's garbage collector lists them.
"""

import weakref
from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch._subclasses.fake_tensor import FakeTensor

from .collected import collected
from .storages import Storage, plain
from .tracker import Tracker


class Unused(NamedTuple):
    """Tensors from before the block that it did not use: bytes of their storages, their number.

    terms       the bytes by kind: parameters are weights, whole numbers inputs, all else other
    """

    bytes: int
    storages: int
    terms: Mapping[str, int] = {}


class Preexisting:
    """Remembers the tensors that are alive now; keeps none of them alive.

    Leaves out  tensors that only C++ holds, such as what autograd keeps of an earlier forward
    """

    def __init__(self) -> None:
        self._tensors = [weakref.ref(each) for each in _tensors()]

    def idle(self, tracker: Tracker) -> Unused:
        """Those that are still alive and that the tracker has not met."""
        found: dict[int, tuple[Storage, str]] = {}
        for each in [one for ref in self._tensors if (one := ref()) is not None]:
            for part in plain(each):
                storage = part.untyped_storage()
                if tracker.device_counts(part.device) and not tracker.knows(storage):
                    found[storage._cdata] = storage, _kind(each)
        sizes: dict[str, int] = {}
        for storage, kind in found.values():
            sizes[kind] = sizes.get(kind, 0) + storage.nbytes()
        return Unused(sum(sizes.values()), len(found), sizes)


def _kind(tensor: torch.Tensor) -> str:
    if isinstance(tensor, torch.nn.Parameter):
        return "weights"
    return "other" if tensor.dtype.is_floating_point else "inputs"


def _tensors() -> list[torch.Tensor]:
    """Every tensor with memory that Python holds."""
    return [one for one in collected(_is_real) if one.device.type != "meta"]


def _is_real(kind: type) -> bool:
    return issubclass(kind, torch.Tensor) and not issubclass(kind, FakeTensor)
