"""Training steps under FSDP2 on real ranks of this machine, every byte of one rank counted.

B batch of one rank · T tokens · R ranks
"""

import time
from contextlib import nullcontext
from operator import gt
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.distributed.fsdp._fully_shard._fsdp_collectives import (
    DefaultAllGather,
    DefaultReduceScatter,
)

from ..base.garbage import no_garbage
from ..measure.step_tracker import StepTracker
from ..measure.tracker import Tracker
from ..model import Model
from ..recipe import Recipe
from ..recipe.chosen import recipe_for
from ..recipe.loops import loop_of
from ..recipe.parallelism import Sharding
from ..run import Run
from .optim import optimizer
from .sharded import gathered_weights
from .subject import DTYPES, loss_of, subject

Held = dict[str, Any]
PATIENCE = 10  # seconds


class _Settled:
    """A collective that returns when gloo's own thread has let go of its tensors as well.

    That thread needs Python's lock to free what a tracker looks at, so without this some bytes
    would be counted for a moment longer, or would not, from run to run.
    """

    def __init__(self, tracker: Tracker) -> None:
        super().__init__()
        self.tracker = tracker

    def __call__(self, output_tensor: Tensor, input_tensor: Tensor, *args: Any, **more: Any) -> Any:
        before = self._held(output_tensor, input_tensor)
        work = super().__call__(output_tensor, input_tensor, *args, **more)  # type: ignore[misc]
        until = time.monotonic() + PATIENCE
        while any(map(gt, self._held(output_tensor, input_tensor), before)):
            if time.monotonic() > until:
                raise RuntimeError("gloo keeps a buffer of a collective that is over")
            time.sleep(0.001)
        return work

    def _held(self, *tensors: Tensor) -> list[int]:
        """How many hold each of them, and all bytes that are counted, gloo's copy among them."""
        counts = [torch._C._storage_Use_Count(t.untyped_storage()._cdata) for t in tensors]
        return [*counts, self.tracker.current]


class AllGather(_Settled, DefaultAllGather):
    """FSDP2's own."""


class ReduceScatter(_Settled, DefaultReduceScatter):
    """FSDP2's own."""


def shard(module: nn.Module, layers: int, devices: Sharding, tracker: Tracker) -> nn.Module:
    """`fully_shard` of each layer and of the model, with the policy that `devices` says."""
    policy = MixedPrecisionPolicy(
        param_dtype=DTYPES.get(devices.param_dtype or ""),
        reduce_dtype=DTYPES.get(devices.reduce_dtype or ""),
    )
    lists = (part for part in module.modules() if isinstance(part, nn.ModuleList))
    for layer in next(part for part in lists if len(part) == layers):
        fully_shard(layer, mp_policy=policy, reshard_after_forward=devices.reshard_after_forward)
    fully_shard(module, mp_policy=policy)
    for part in module.modules():
        if isinstance(part, FSDPModule):
            part.set_custom_all_gather(AllGather(tracker))
            part.set_custom_reduce_scatter(ReduceScatter(tracker))
    return module


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
    recipe = recipe_for(model, recipe)
    tracker = StepTracker()
    net: Any = shard(subject(model, recipe, run), model.layers, run.devices, tracker)
    named = dict(net.named_parameters())
    chosen = optimizer(recipe.optimizer, named, loop=loop_of(recipe, run))
    ids_BT = torch.randint(model.vocab, (run.batch, run.tokens or 0))
    narrow = recipe.autocast
    cast: Any = torch.autocast("cpu", DTYPES[narrow]) if narrow else nullcontext()
    held: Held = {}
    peaks = []
    with no_garbage(), tracker:
        tracker.label([net, chosen])
        tracker.label(ids_BT, "inputs")
        for _ in range(2):
            tracker.reset_peak()
            for number in range(1, run.micro_batches + 1):
                last = number == run.micro_batches
                net.set_requires_gradient_sync(last or run.devices.gradient_sync == "every")
                with tracker.phase("forward"), cast:
                    loss = loss_of(net, ids_BT, run)
                    loss = loss / run.micro_batches if run.micro_batches > 1 else loss
                held["after_forward"] = tracker.current
                tracker.label(list(gathered_weights(net)), "gathered weights")
                with tracker.phase("backward"):
                    loss.backward()
                del loss
            held["after_backward"] = tracker.current
            with tracker.phase("optimizer"):
                chosen.step()
            chosen.zero_grad()
            held["between_steps"] = tracker.current
            peaks.append(tracker.peak)
    top = tracker.peak_event
    assert top is not None
    held |= {"peak": top.total, "first_peak": peaks[0], "phase": top.phase, "op": top.op}
    contents = tracker.contents(top.index)
    return held | {"contents": {name: size for name, size in contents.items() if size}}


def several(questions: list[tuple[Model, Recipe | str, Run]]) -> list[Held]:
    """`steps` of several questions, so that processes start only once."""
    return [steps(*question) for question in questions]
