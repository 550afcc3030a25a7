"""One rank of several, in one process: collectives return at once, their results unwritten.

Source      PyTorch 2.13: torch.testing._internal.distributed.fake_pg, with which PyTorch tests
            itself; torch/nn/parallel/distributed.py; torch/distributed/tensor/_sharding_prop.py
Leaves out  what other ranks send, NCCL's buffers (a row of the answer), time on the wire
"""

from importlib import import_module
from typing import Any

import torch
import torch.distributed as dist

from ..measure.fake_cuda.refused import Refused
from ..measure.fake_cuda.undo import Changes
from .asked import Asked

# Shapes that DTensor works out, without this in the modes of a rehearsal, are no memory.
NO_MEMORY = ("detect_fake_mode",)
SENDS = tuple(  # of torch.ops._c10d_functional; others send a copy of what they are given
    name + more
    for name in ("all_gather_into_tensor", "reduce_scatter_tensor", "all_to_all_single")
    for more in ("", "_coalesced")
)
MASTER = {"MASTER_ADDR": "localhost", "MASTER_PORT": "29500"}


def variables(asked: Asked) -> dict[str, str]:
    """What torchrun sets for a rank; nothing where nobody starts several."""
    if not asked.program.ranks:
        return {}
    numbers = {"RANK": asked.rank, "LOCAL_RANK": asked.local}
    numbers |= {"WORLD_SIZE": asked.program.ranks, "LOCAL_WORLD_SIZE": asked.program.local}
    numbers["GROUP_RANK"] = asked.rank // asked.program.local
    return {name: str(number) for name, number in numbers.items()} | MASTER


class PendingCollectives:
    """Collectives on their way: each holds what it sends until its result is waited for, as NCCL's.

    Waiting gives the tensor that was waited for; torch's shapes say that it is another one.

    Source      PyTorch 2.13: torch/csrc/distributed/c10d/Functional.cpp, wait_tensor;
                ProcessGroupNCCL.cpp, the shelf of tensors that a work keeps until `wait`
    """

    def __init__(self) -> None:
        self.sends = {_functional(name) for name in SENDS}
        self.waits = _functional("wait_tensor")
        self.sent: dict[int, Any] = {}

    def leaves(self, given: Any, results: Any) -> None:
        """A collective has begun."""
        for made in results if isinstance(results, (list, tuple)) else (results,):
            self.sent[made.untyped_storage()._cdata] = given

    def lands(self, result: Any) -> Any:
        """One is waited for."""
        self.sent.pop(result.untyped_storage()._cdata, None)
        return result


def _functional(name: str) -> Any:
    return getattr(getattr(torch.ops._c10d_functional, name, None), "default", None)


def group(changes: Changes, ranks: int, rank: int) -> None:
    """Let any process group be torch's fake one, of so many ranks, of which this is one."""
    if not dist.is_available():
        return
    store = import_module("torch.testing._internal.distributed.fake_pg").FakeStore
    homes = (dist, import_module("torch.distributed.distributed_c10d"))
    begin, before = dist.init_process_group, dist.is_initialized()

    def init(*_: Any, **__: Any) -> None:
        if not dist.is_initialized():
            begin("fake", rank=rank, world_size=ranks, store=store())

    def end() -> None:
        if dist.is_initialized() and not before:
            dist.destroy_process_group()

    def gather(every: list[Any], own: Any, *_: Any, **__: Any) -> None:
        every[:] = [own] * len(every)

    def receive(*_: Any, **__: Any) -> None:
        raise Refused("recv_object_list: what another rank sends is not known here")

    changes.callback(end)
    own = {
        "init_process_group": init,
        "is_nccl_available": lambda: True,
        "barrier": _nothing,
        "monitored_barrier": _nothing,
        "_set_pg_timeout": _nothing,
        "all_gather_object": gather,
        "broadcast_object_list": _nothing,
        "send_object_list": _nothing,
        "recv_object_list": receive,
    }
    for home in homes:
        changes.replace_all(home, own)
    shapes = import_module("torch.distributed.tensor._sharding_prop")
    changes.replace_all(shapes, dict.fromkeys(NO_MEMORY, _nothing))
    _replicas(changes)


def _replicas(changes: Changes) -> None:
    """DistributedDataParallel without what it asks of the other ranks, or of a clock on a card."""
    home = import_module("torch.nn.parallel.distributed")
    asks = ("_verify_param_shape_across_processes", "_sync_module_states")
    for owner in (home, import_module("torch.distributed.utils")):
        changes.replace_all(owner, dict.fromkeys(asks, _nothing))
    changes.replace_all(dist, {"_verify_params_across_processes": _nothing})
    kind = home.DistributedDataParallel
    make = kind.__init__

    def made(self: Any, *args: Any, **kwargs: Any) -> None:
        make(self, *args, **kwargs)
        self.register_comm_hook(None, _reduced)
        self.logger = _Quiet()

    changes.replace(kind, "__init__", made)


def _reduced(_: Any, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """A bucket of gradients, as it comes back of the other ranks."""
    future: torch.futures.Future[torch.Tensor] = torch.futures.Future()
    future.set_result(bucket.buffer())
    return future


class _Quiet:
    def __getattr__(self, name: str) -> Any:
        return _nothing


def _nothing(*_: Any, **__: Any) -> None:
    return None
