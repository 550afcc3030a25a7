"""Saved tensors that live elsewhere between forward and backward.

They are on the device only while somebody computes with them. What that costs is the bus, and the
`Host` that they are sent to counts it.
"""

import weakref
from typing import Any

import torch
from torch import Tensor

from ..measure.storages import PerStorage, storages
from .host import Host


class OffloadedStorage:
    """One storage that is elsewhere; `readers` counts the saved views of it that nobody has used.

    The first of them brings the storage back, and it stays on the device until the last.
    """

    def __init__(self, tensor: Tensor, host: Host) -> None:
        storage = tensor.untyped_storage()
        self.host, self.size, self.device = host, storage.nbytes(), tensor.device
        self.version, self.readers = tensor._version, 0
        self.place = host.send(storage)
        self._here: Tensor | None = None
        weakref.finalize(self, host.give_back, self.place, self.size)

    def back(self) -> Tensor:
        """The bytes, [size] of uint8, on the device."""
        here = self._here
        if here is None:
            here = self.host.bring(self.place, self.size, self.device)
        self.readers -= 1
        self._here = here if self.readers > 0 else None
        return here


class Offload(torch.autograd.graph.saved_tensors_hooks):
    """Send what autograd saves to a host, each storage once, and bring it back in backward.

    Example     with Offload(host, keep=net): loss = net(ids, ids)
    keep        what stays: weights are on the device anyway
    least       storages with fewer bytes stay, too: a transfer has a cost of its own
    Views       autograd saves tensors, and several may be views of one storage. torch's own
                save_on_cpu copies each of them; here the second one finds the first
    In place    a storage that was written to since it was sent is sent again: the version that
                autograd counts says so
    Formula     after the forward pass nothing of it is on the device; over the bus 2 · A, for A
                bytes of saved storages
    Source      torch.autograd.graph.saved_tensors_hooks
    Leaves out  bringing back ahead of time: backward waits for each storage; tensors that are made
                of others (quantized, distributed), which have no storage of their own and stay
    """

    def __init__(self, host: Host, *, keep: Any = (), least: int = 0) -> None:
        stays = set(storages(keep))
        known: PerStorage[weakref.ref[OffloadedStorage]] = PerStorage()

        def pack(tensor: Tensor) -> Any:
            storage = tensor.untyped_storage()
            if storage._cdata in stays or storage.nbytes() < max(least, 1):
                return tensor
            before = known.get(storage)
            sent = before() if before else None
            if sent is None or sent.version != tensor._version:
                sent = OffloadedStorage(tensor, host)
                known.add(storage, weakref.ref(sent))
            sent.readers += 1
            layout = tensor.size(), tensor.stride(), tensor.storage_offset()
            return sent, tensor.dtype, layout

        def unpack(packed: Any) -> Tensor:
            if isinstance(packed, Tensor):
                return packed
            sent, dtype, (size, stride, offset) = packed
            return sent.back().view(dtype).as_strided(size, stride, offset)

        super().__init__(pack, unpack)
