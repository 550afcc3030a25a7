"""Training with less on the device: saved tensors and optimizer states that live elsewhere.

Both are on the device only while somebody computes with them. What they cost is the bus, and the
`Host` that they are given counts it.
"""

import weakref
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from ..measure.storages import Living, storages
from .host import Host


class Sent:
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
        known: Living[weakref.ref[Sent]] = Living()

        def pack(tensor: Tensor) -> Any:
            storage = tensor.untyped_storage()
            if storage._cdata in stays or storage.nbytes() < max(least, 1):
                return tensor
            before = known.get(storage)
            sent = before() if before else None
            if sent is None or sent.version != tensor._version:
                sent = Sent(tensor, host)
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


class Elsewhere(Optimizer):
    """Any optimizer, with its states on a host and one parameter's at a time on the device.

    make        builds the optimizer for a list of parameters, such as torch.optim.AdamW
    master      keep an fp32 copy of each parameter there as well, and update that one
    at_once     bring all states for the step instead: what that saves, and what it does not
    Formula     on the device during the step: t instead of S, the states (and master) of the
                largest parameter; over the bus 2 · S a step
    Source      Ren et al. 2021, ZeRO-Offload, arXiv:2101.06840, which goes one step further and
                computes the update on the host: gradients go out, weights come in
    Leaves out  bringing the next parameter's states while this one's update is computed
    """

    def __init__(
        self,
        parameters: Iterable[Tensor],
        make: Callable[[list[Tensor]], Optimizer],
        host: Host,
        *,
        master: bool = False,
        at_once: bool = False,
    ) -> None:
        super().__init__(list(parameters), {})
        self.host, self.at_once = host, at_once
        self._updates = [_Update(p, make, host, master) for p in self.param_groups[0]["params"]]

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        todo = [update for update in self._updates if update.parameter.grad is not None]
        for several in [todo] if self.at_once else [[update] for update in todo]:
            for update in several:
                update.arrive()
            for update in several:
                update.run()
            for update in several:
                update.leave()


class _Update:
    """One parameter, its own optimizer, and where on the host each of its tensors is."""

    def __init__(self, parameter: Tensor, make: Callable, host: Host, master: bool) -> None:
        self.parameter, self.host = parameter, host
        self.updated = nn.Parameter(parameter.detach().float()) if master else parameter
        self.optimizer = make([self.updated])
        self.places: dict[str, Any] = {}  # name -> place, bytes, dtype
        if master:
            self.leave()

    def tensors(self) -> dict[str, Tensor]:
        """What travels: the states, without the counter of steps, and the master copy."""
        state = self.optimizer.state[self.updated]
        found = {k: t for k, t in state.items() if torch.is_tensor(t) and k != "step"}
        return found if self.updated is self.parameter else {**found, "master": self.updated.data}

    def arrive(self) -> None:
        for name, (place, size, dtype) in self.places.items():
            memory = self.host.bring(place, size, self.parameter.device)
            self._replace(name, memory.view(dtype).view(self.parameter.shape))

    def run(self) -> None:
        if self.updated is self.parameter:
            self.optimizer.step()
            return
        assert self.parameter.grad is not None
        self.updated.grad = self.parameter.grad.float()
        self.optimizer.step()
        self.updated.grad = None
        self.parameter.copy_(self.updated)

    def leave(self) -> None:
        for name, tensor in self.tensors().items():
            place = self.host.send(tensor.untyped_storage(), self.places.get(name, [None])[0])
            self.places[name] = place, tensor.untyped_storage().nbytes(), tensor.dtype
            self._replace(name, tensor.new_empty(0))

    def _replace(self, name: str, tensor: Tensor) -> None:
        if name == "master":
            self.updated.data = tensor
        else:
            self.optimizer.state[self.updated][name] = tensor
