"""Training steps under FSDP2 on real ranks of this machine, every byte of one rank counted.

B batch of one rank · T tokens · R ranks
"""

from contextlib import nullcontext
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import (
    CPUOffloadPolicy,
    FSDPModule,
    MixedPrecisionPolicy,
    OffloadPolicy,
    fully_shard,
)
from torch.distributed.fsdp._fully_shard._fsdp_collectives import (
    DefaultAllGather,
    DefaultReduceScatter,
)

from ..base.gc_paused import no_garbage
from ..measure.step_tracker import StepTracker
from ..measure.tracker import Tracker
from ..model import Model
from ..recipe import Recipe
from ..run import Run
from ..run.optimizer_loops import loop_of
from ..run.recipe_choice import recipe_for
from ..sharding import Sharding
from .host_and_device import HostAndDevice
from .optim import optimizer
from .sharded import gathered_weights
from .subject import DTYPES, loss_of, subject
from .sync_collectives import settled, settled_all_reduce
from .two_steps import Held, Marks, each, now, one_pass, told, update


class _Settled:
    """A collective of FSDP2 that is over when it returns: memlab.lab.sync_collectives."""

    def __init__(self, tracker: Tracker) -> None:
        super().__init__()
        self.tracker = tracker

    def __call__(self, output_tensor: Tensor, input_tensor: Tensor, *args: Any, **more: Any) -> Any:
        with settled(self.tracker, output_tensor, input_tensor):
            return super().__call__(output_tensor, input_tensor, *args, **more)  # type: ignore[misc]


class AllGather(_Settled, DefaultAllGather):
    """FSDP2's own."""


class ReduceScatter(_Settled, DefaultReduceScatter):
    """FSDP2's own."""


def shard(module: nn.Module, layers: int, devices: Sharding, tracker: Tracker) -> nn.Module:
    """`fully_shard` of each layer and of the model, with the policy that `devices` says."""
    policy = MixedPrecisionPolicy(
        param_dtype=DTYPES.get(devices.policy.param_dtype or ""),
        reduce_dtype=DTYPES.get(devices.policy.reduce_dtype or ""),
    )
    how: Held = {"mp_policy": policy, "offload_policy": OffloadPolicy()}
    if devices.policy.cpu_offload:
        how["offload_policy"] = CPUOffloadPolicy(pin_memory=False)
    if devices.policy.replicas > 1:
        sizes = (devices.policy.replicas, devices.sharers)
        how["mesh"] = init_device_mesh("cpu", sizes, mesh_dim_names=("replicate", "shard"))
    lists = (part for part in module.modules() if isinstance(part, nn.ModuleList))
    for layer in next(part for part in lists if len(part) == layers):
        fully_shard(layer, reshard_after_forward=devices.policy.reshard_after_forward, **how)
    fully_shard(module, **how)
    for part in module.modules():
        if isinstance(part, FSDPModule):
            part.set_custom_all_gather(AllGather(tracker))
            part.set_custom_reduce_scatter(ReduceScatter(tracker))
    return module


def steps(model: Model, recipe: Recipe | str, run: Run) -> Held:
    """On one of R real ranks: two steps; what the second held at its peak and at quiet moments.

    Shapes      every rank reads [B, T] token ids of its own in each micro-batch
    Unit        bytes of storages; gradients that meet are added in place, as autograd adds them
    Host        under CPUOffloadPolicy "host" has the same of the host: memlab.lab.host_and_device
    Leaves out  scratch memory inside one operator, buffers of gloo
    Raises      ValueError for another number of ranks than the run has
    """
    if dist.get_world_size() != run.devices.data:
        raise ValueError(f"{dist.get_world_size()} ranks are here; the run has {run.devices.data}")
    torch.manual_seed(0)  # every rank begins with the same weights
    recipe, sync = recipe_for(model, recipe, run), run.devices.policy.gradient_sync
    tracker = StepTracker()
    net: Any = shard(subject(model, recipe, run), model.layers, run.devices, tracker)
    named = dict(net.named_parameters())
    chosen = optimizer(recipe.optimizer, named, loop=loop_of(recipe, run))
    ids_BT = torch.randint(model.vocab, (run.batch, run.tokens or 0))
    narrow = recipe.autocast
    cast = torch.autocast("cpu", DTYPES[narrow]) if narrow else None
    places = HostAndDevice(tracker) if run.devices.policy.cpu_offload else None
    marks: Marks = {}
    loss = partial(loss_of, net, ids_BT, run)

    def gathered() -> None:
        tracker.label(list(gathered_weights(net)), "gathered weights")

    with no_garbage(), settled_all_reduce(tracker), tracker, places or nullcontext():
        tracker.label([net, chosen])
        tracker.label(ids_BT, "inputs")
        for step in ("first", "second"):
            marks[step] = now(tracker)
            for number in range(1, run.micro_batches + 1):
                last = number == run.micro_batches
                net.set_requires_gradient_sync(last or sync != "last")
                net.set_requires_all_reduce(last or sync != "shards")
                one_pass(tracker, marks, loss, run, cast=cast, between=gathered)
            update(tracker, marks, chosen)
    if places is None:
        return told(tracker, marks)
    here = told(tracker, marks, lambda ident: not places.hosts(ident))
    return here | {"host": told(tracker, marks, places.hosts)}


several = partial(each, steps)
