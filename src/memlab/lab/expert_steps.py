"""Training steps on real ranks that divide a mixture's experts, every byte of one rank counted.

B batch of one rank · T tokens · X experts, k of them for each token · R ranks, E of a group
"""

from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule
from torch.utils._python_dispatch import _disable_current_modes

from ..base.gc_paused import no_garbage
from ..measure.step_tracker import StepTracker
from ..measure.tracker import Tracker
from ..model import Model
from ..recipe import Recipe
from ..run import Run
from ..run.optimizer_loops import loop_of
from ..run.recipe_choice import recipe_for
from ..sharding import Sharding
from ..sharding.expert_parallel import ROUTINGS
from .optim import optimizer
from .sharded import gathered_weights
from .sharded_steps import AllGather, ReduceScatter
from .subject import loss_of, subject
from .sync_collectives import settled_call
from .two_steps import Held, Marks, each, now, one_pass, told, update

EXCHANGE = torch.ops._c10d_functional.all_to_all_single.default


class ExchangeTracker(StepTracker):
    """Waits until gloo lets go of an all-to-all's tensors: memlab.lab.sync_collectives."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func is not EXCHANGE:
            return super().__torch_dispatch__(func, types, args, kwargs)
        return settled_call(
            lambda: Tracker.__torch_dispatch__(self, func, types, args, kwargs), args[0]
        )


def divide(net: Any, devices: Sharding, tracker: StepTracker) -> nn.Module:
    """What from_pretrained(..., distributed_config=...) does, on weights that are here already.

    Source      transformers, distributed/mixin.py: maybe_distribute_model; utils.py beside it:
                initialize_distributed_mesh, which asks for an accelerator and makes these meshes
    """
    from transformers import DistributedConfig
    from transformers.distributed.utils import TransformersDeviceMesh

    R, E = devices.data, devices.experts.ranks
    how = DistributedConfig(
        fsdp_size=R, ep_size=E, fsdp_mixed_precision=devices.policy.param_dtype is not None
    )
    dense = init_device_mesh(
        "cpu", (1, 1, R, 1), mesh_dim_names=("pp", "dp_replicate", "fsdp", "tp")
    )
    names = ("pp", "dp_replicate", "efsdp", "ep")
    experts = init_device_mesh("cpu", (1, 1, R // E, E), mesh_dim_names=names)
    meshes = TransformersDeviceMesh(dense, experts)
    type(net).maybe_distribute_model(net, how, meshes)
    for part in net.modules():
        if isinstance(part, FSDPModule):
            part.set_custom_all_gather(AllGather(tracker))
            part.set_custom_reduce_scatter(ReduceScatter(tracker))
    return net


def route(net: nn.Module, model: Model, run: Run, routing: str) -> None:
    """Choose experts in turn, or the first k for every token, whatever the router says.

    Raises      ValueError for an unknown routing
    """
    if routing not in ROUTINGS:
        raise ValueError(f"routing={routing!r}; known: {', '.join(ROUTINGS)}")
    rows, k = run.batch * (run.tokens or 0), model.experts_per_token
    chosen = (torch.arange(rows * k) % model.experts).view(rows, k)
    if routing == "fullest":
        chosen = torch.arange(k).expand(rows, k).contiguous()
    for name, part in net.named_modules():
        if not name.endswith((".gate", ".router")) or not hasattr(part, "weight"):
            continue

        def turned(_: Any, __: Any, found: Any) -> None:
            with _disable_current_modes():  # it is nobody's memory
                found[-1].data.copy_(chosen)

        part.register_forward_hook(turned)


def steps(model: Model, recipe: Recipe | str, run: Run) -> Held:
    """On one of R real ranks: two steps; what the second held at its peak and at quiet moments.

    Shapes      every rank reads [B, T] token ids of its own in each micro-batch
    Unit        bytes of storages; gradients that meet are added in place, as autograd adds them
    Leaves out  scratch memory inside one operator, buffers of gloo
    Raises      ValueError for another number of ranks than the run has
    """
    if dist.get_world_size() != run.devices.data:
        raise ValueError(f"{dist.get_world_size()} ranks are here; the run has {run.devices.data}")
    torch.manual_seed(0)  # every rank begins with the same weights
    recipe = recipe_for(model, recipe, run)
    tracker = ExchangeTracker()
    net: Any = subject(model, recipe, run)
    route(net, model, run, run.devices.experts.routing)
    divide(net, run.devices, tracker)
    chosen = optimizer(recipe.optimizer, dict(net.named_parameters()), loop=loop_of(recipe, run))
    ids_BT = torch.randint(model.vocab, (run.batch, run.tokens or 0))
    marks: Marks = {}
    loss = partial(loss_of, net, ids_BT, run)

    def gathered() -> None:
        tracker.label(list(gathered_weights(net)), "gathered weights")

    with no_garbage(), tracker:
        tracker.label([net, chosen])
        tracker.label(ids_BT, "inputs")
        for step in ("first", "second"):
            marks[step] = now(tracker)
            for number in range(1, run.micro_batches + 1):
                last = number == run.micro_batches
                net.set_requires_gradient_sync(last or run.devices.policy.gradient_sync == "every")
                one_pass(tracker, marks, loss, run, between=gathered)
            update(tracker, marks, chosen)
    return told(tracker, marks)


several = partial(each, steps)
