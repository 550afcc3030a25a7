"""An optimizer whose states live elsewhere, one parameter's at a time on the device."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from .host import Host


class OffloadedStates(Optimizer):
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
