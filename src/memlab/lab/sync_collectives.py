"""Collectives that are over when gloo's own thread has let go of their tensors as well.

That thread needs Python's lock to free what a tracker looks at, so without this some bytes would be
counted for a moment longer, or would not, from run to run.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from operator import gt
from typing import Any
from unittest.mock import patch

import torch
import torch.distributed as dist
from torch import Tensor

from ..measure.tracker import Tracker

PATIENCE = 10  # seconds


def _holders(tensor: Tensor) -> int:
    return tensor._use_count()  # type: ignore[attr-defined, no-any-return]


@contextmanager
def settled(tracker: Tracker, *tensors: Tensor) -> Iterator[None]:
    """Wait after the block until nobody holds these tensors who did not hold them before."""

    def held() -> list[int]:
        """How many hold each of them, and all bytes that are counted, gloo's copy among them.

        Who holds a view holds the storage; who holds the very tensor only the tensor.
        """
        storages = [torch._C._storage_Use_Count(t.untyped_storage()._cdata) for t in tensors]
        return [*storages, *map(_holders, tensors), tracker.current]

    before = held()
    yield
    until = time.monotonic() + PATIENCE
    while any(map(gt, held(), before)):
        if time.monotonic() > until:
            raise RuntimeError("gloo keeps a buffer of a collective that is over")
        time.sleep(0.001)


def settled_call(call: Callable[[], Tensor], read: Tensor) -> Tensor:
    """What a functional collective of `read` makes, when nobody but its caller holds the two."""
    before = _holders(read)
    made = call()
    torch.ops._c10d_functional.wait_tensor(made)
    until = time.monotonic() + PATIENCE
    while _holders(made) > 1 or _holders(read) > before:
        if time.monotonic() > until:
            raise RuntimeError("gloo keeps a tensor of a collective that is over")
        time.sleep(0.0005)
    return made


@contextmanager
def settled_all_reduce(tracker: Tracker) -> Iterator[None]:
    """Settle each all-reduce of the block, whoever asks for it."""
    own = dist.all_reduce

    def all_reduce(tensor: Tensor, *args: Any, **more: Any) -> Any:
        with settled(tracker, tensor):
            return own(tensor, *args, **more)

    with patch.object(dist, "all_reduce", all_reduce):
        yield


@contextmanager
def settled_all_gather(tracker: Tracker) -> Iterator[None]:
    """Settle each all-gather of the block into a list, whoever asks for it."""
    own = dist.all_gather

    def all_gather(tensor_list: list[Tensor], tensor: Tensor, *args: Any, **more: Any) -> Any:
        with settled(tracker, *tensor_list, tensor):
            return own(tensor_list, tensor, *args, **more)

    with patch.object(dist, "all_gather", all_gather):
        yield
