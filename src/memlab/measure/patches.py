"""Two places that no dispatch mode sees, watched for the length of a `with` block."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from .storages import tensors


@contextmanager
def watch_resizes(resized: Callable[[torch.UntypedStorage], None]) -> Iterator[None]:
    """Call `resized(storage)` after every `storage.resize_(n)`: FSDP frees its buffers this way."""
    kind: Any = torch.UntypedStorage  # typed loosely: a class attribute is replaced
    inherited = kind.resize_
    own = kind.__dict__.get("resize_")

    def resize_(storage: torch.UntypedStorage, size: int) -> Any:
        result = inherited(storage, size)
        resized(storage)
        return result

    kind.resize_ = resize_
    try:
        yield
    finally:
        if own is None:
            del kind.resize_
        else:
            kind.resize_ = own


def _keep(tensor: torch.Tensor) -> torch.Tensor:
    # A node that held its own output would never be freed; a leaf has no node.
    return tensor if tensor.grad_fn is None else tensor.detach()


@contextmanager
def watch_saves(saved: Callable[[torch.Tensor], None]) -> Iterator[None]:
    """Call `saved(tensor)` for every tensor that autograd keeps for backward.

    Autograd asks the innermost pair of saved-tensor hooks only. Checkpointing and offloading bring
    their own pair, so each pair that is entered meanwhile is wrapped: what *its* pack hook returns
    is what stays in memory (a copy, a placeholder), and that is what counts.
    """
    hooks: Any = torch.autograd.graph.saved_tensors_hooks
    enter = hooks.__enter__

    def enter_and_watch(pair: Any) -> Any:
        pack = pair.pack_hook

        def pack_and_tell(tensor: torch.Tensor) -> Any:
            try:
                packed = pack(tensor)
            except Exception:
                saved(tensor)  # checkpointing stops its recomputation so, after the last save
                raise
            for kept in tensors(packed):
                saved(kept)
            return packed

        pair.pack_hook = pack_and_tell
        try:
            return enter(pair)
        finally:
            pair.pack_hook = pack

    hooks.__enter__ = enter_and_watch
    try:
        with torch.autograd.graph.saved_tensors_hooks(_keep, lambda tensor: tensor):
            yield
    finally:
        hooks.__enter__ = enter
