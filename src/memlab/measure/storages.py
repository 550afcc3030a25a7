"""The storages behind tensors, modules and optimizers: what is counted, and counted once.

A tensor is a view; memory belongs to its storage. Two tensors may share one storage (a tied weight,
a slice), and one tensor may hold several (a quantized tensor, a DTensor, a sparse tensor).
"""

import weakref
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

import torch
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

Value = TypeVar("Value")
Storage = torch.UntypedStorage

_SPARSE = {
    torch.sparse_coo: ("_indices", "_values"),
    torch.sparse_csr: ("crow_indices", "col_indices", "values"),
    torch.sparse_bsr: ("crow_indices", "col_indices", "values"),
    torch.sparse_csc: ("ccol_indices", "row_indices", "values"),
    torch.sparse_bsc: ("ccol_indices", "row_indices", "values"),
}


def is_plain(tensor: torch.Tensor) -> bool:
    """Whether a tensor is made of no others."""
    return not hasattr(type(tensor), "__tensor_flatten__") and tensor.layout is torch.strided


def plain(tensor: torch.Tensor) -> Iterator[torch.Tensor]:
    """The tensors with a storage of their own that `tensor` is made of, often just itself.

    Source      a wrapper subclass names its parts in `__tensor_flatten__`; its own storage is
                an empty shell that reports the logical size (an NF4 tensor 3.9 times too much)
    """
    if is_traceable_wrapper_subclass(tensor):
        for name in tensor.__tensor_flatten__()[0]:
            part = getattr(tensor, name)
            if isinstance(part, torch.Tensor):  # a DTensor lists its DeviceMesh too
                yield from plain(part)
    elif tensor.layout in _SPARSE:
        for name in _SPARSE[tensor.layout]:
            yield from plain(getattr(tensor, name)())
    else:
        yield tensor


def tensors(thing: Any) -> Iterator[torch.Tensor]:
    """The tensors of a module (parameters, buffers), an optimizer (state) or nested containers.

    Leaves out  gradients, and anything that is not a tensor, module, optimizer or container
    """
    if isinstance(thing, torch.Tensor):
        yield thing
    elif isinstance(thing, torch.nn.Module):
        yield from thing.parameters()
        yield from thing.buffers()
    elif isinstance(thing, torch.optim.Optimizer):
        yield from tensors(list(thing.state.values()))
        for group in thing.param_groups:  # a learning rate may be a tensor as well
            yield from tensors([value for name, value in group.items() if name != "params"])
    elif isinstance(thing, dict):
        for value in thing.values():
            yield from tensors(value)
    elif isinstance(thing, (list, tuple, set)):
        for value in thing:
            yield from tensors(value)


def storages(*things: Any) -> dict[int, Storage]:
    """Every storage of `things`, once, by its address.

    Raises      TypeError for something that holds no tensors by its kind
    """
    kinds = (torch.Tensor, torch.nn.Module, torch.optim.Optimizer, dict, list, tuple, set)
    found: dict[int, Storage] = {}
    for thing in things:
        if isinstance(thing, Storage):
            found[thing._cdata] = thing
        elif not isinstance(thing, kinds):
            raise TypeError(
                f"{thing!r} is a {type(thing).__name__}; a tensor, module, optimizer or a "
                "dict, list, tuple or set of them is needed"
            )
        for tensor in tensors(thing):
            for part in plain(tensor):
                storage = part.untyped_storage()
                found[storage._cdata] = storage
    return found


def storage_bytes(*things: Any) -> int:
    """Bytes that tensors, modules, optimizers and containers of them hold, each storage once.

    Unit        bytes, unrounded: what was asked for, before any allocator rounds it
    Leaves out  gradients (`resident` counts them), and sharing of memory between two storages,
                such as a tensor and the NumPy array that it was made from
    Raises      TypeError for something that holds no tensors by its kind
    """
    return sum(storage.nbytes() for storage in storages(*things).values())


def resident(
    module: torch.nn.Module, optimizer: torch.optim.Optimizer | None = None
) -> dict[str, int]:
    """Bytes that stay between two training steps: weights, buffers, gradients, optimizer.

    Unit        bytes; a storage counts once, under the first of these names that holds it
    Leaves out  activations, inputs and temporaries: they live within a step
    Raises      TypeError if `module` is not a module or `optimizer` not an optimizer
    """
    if not isinstance(module, torch.nn.Module):
        raise TypeError(f"module is a {type(module).__name__}; a torch.nn.Module is needed")
    if optimizer is not None and not isinstance(optimizer, torch.optim.Optimizer):
        raise TypeError(f"optimizer is a {type(optimizer).__name__}; a torch.optim.Optimizer")
    groups: dict[str, list[Any]] = {
        "weights": list(module.parameters()),
        "buffers": list(module.buffers()),
        "gradients": [p.grad for p in module.parameters() if p.grad is not None],
        "optimizer": [] if optimizer is None else [optimizer],
    }
    counted: set[int] = set()
    sizes = {}
    for name, things in groups.items():
        new = {key: s for key, s in storages(*things).items() if key not in counted}
        sizes[name] = sum(storage.nbytes() for storage in new.values())
        counted |= new.keys()
    return sizes


class PerStorage(Generic[Value]):
    """A value for each storage, dropped when the storage dies; keeps no storage alive.

    The address of a storage is its name only while it lives: the next one may get the same.
    """

    def __init__(self, died: Callable[[Value], None] | None = None) -> None:
        self._entries: dict[int, tuple[weakref.ref[Storage], Value]] = {}
        self._died = died

    def get(self, storage: Storage) -> Value | None:
        entry = self._entries.get(storage._cdata)
        return None if entry is None else entry[1]

    def add(self, storage: Storage, value: Value) -> None:
        key = storage._cdata

        def forget(_: Any) -> None:
            del self._entries[key]
            if self._died is not None:
                self._died(value)

        self._entries[key] = (weakref.ref(storage, forget), value)
