"""Tensors without values: a copy of a module, or of its inputs, that has shapes and no memory."""

import copy
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from .storages import tensors


class Fakes:
    """Makes fake tensors like given ones (real, meta or fake), under an open FakeTensorMode.

    device      on which they are, whatever the given ones are on

    What shares a storage goes on sharing one: tied weights stay tied, views stay views. The given
    tensors and modules are only read.
    """

    def __init__(self, mode: Any, device: str = "cpu") -> None:
        self.mode, self.device = mode, device
        self._bases: dict[int, Tensor] = {}
        self._made: dict[int, Tensor] = {}
        self._given: list[Tensor] = []  # kept: an address is a name only while its owner lives

    def of(self, tensor: Tensor) -> Tensor:
        """The fake twin of one tensor, always the same."""
        if id(tensor) not in self._made:
            self._given.append(tensor)
            self._made[id(tensor)] = self._make(tensor)
        return self._made[id(tensor)]

    def _make(self, tensor: Tensor) -> Tensor:
        if is_traceable_wrapper_subclass(tensor) or tensor.layout != torch.strided:
            return self.mode.from_tensor(tensor).to(self.device)
        storage = tensor.untyped_storage()
        with torch.no_grad():
            base = self._bases.get(storage._cdata)
            if base is None:
                base = torch.empty(storage.nbytes(), dtype=torch.uint8, device=self.device)
                self._bases[storage._cdata] = base
            twin = torch.empty(0, dtype=tensor.dtype, device=self.device)
            twin.set_(
                base.untyped_storage(), tensor.storage_offset(), tensor.shape, tensor.stride()
            )
        if isinstance(tensor, nn.Parameter):
            twin = nn.Parameter(twin, tensor.requires_grad)
            vars(twin).update({k: v for k, v in vars(tensor).items() if k not in vars(twin)})
            return twin
        return twin.requires_grad_(tensor.requires_grad and tensor.is_leaf)

    def module(self, module: nn.Module) -> nn.Module:
        """A copy of `module` whose parameters, buffers and other tensors are fake."""
        found: list[Tensor] = []
        for part in module.modules():
            found += part.parameters(recurse=False)
            found += part.buffers(recurse=False)
            held = {k: v for k, v in vars(part).items() if k not in ("_parameters", "_buffers")}
            found += tensors(held)
        return copy.deepcopy(module, {id(tensor): self.of(tensor) for tensor in found})

    def inputs(self, thing: Any) -> Any:
        """`thing` with every tensor in it replaced, through dicts, lists and tuples."""
        if isinstance(thing, Tensor):
            return self.of(thing)
        if isinstance(thing, Mapping):  # also what tokenizers return
            return {name: self.inputs(value) for name, value in thing.items()}
        if isinstance(thing, (list, tuple)):
            made = [self.inputs(value) for value in thing]
            return type(thing)(*made) if hasattr(thing, "_fields") else type(thing)(made)
        return thing
