"""Training steps under FSDP2 on real ranks of this machine, every byte of one rank counted.

B batch of one rank · T tokens · R ranks
"""

from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

from ..base.garbage import no_garbage
from ..measure.step_tracker import StepTracker
from ..model import Model
from ..recipe.chosen import recipe_for
from ..recipe.loops import loop_of
from ..recipe.parallelism import Sharding
from ..run import Run
from .optim import optimizer
from .sharded import gathered_weights
from .subject import DTYPES, loss_of, subject

HELD = dict[str, Any]


def shard(module: nn.Module, layers: int, devices: Sharding) -> nn.Module:
    """`fully_shard` of each layer and of the model, with the policy that `devices` says."""
    policy = MixedPrecisionPolicy(
        param_dtype=DTYPES.get(devices.param_dtype or ""),
        reduce_dtype=DTYPES.get(devices.reduce_dtype or ""),
    )
    lists = (part for part in module.modules() if isinstance(part, nn.ModuleList))
    for layer in next(part for part in lists if len(part) == layers):
        fully_shard(
            layer, mp_policy=policy, reshard_after_forward=devices.reshard_after_forward
        )
    fully_shard(module, mp_policy=policy)
    return module


def steps(model: Model, precision: str, run: Run) -> HELD:
    """On one of R real ranks: two steps; what the second held at its peak, and between two moments.

    Shapes      every rank reads [B, T] token ids of its own in each micro-batch
    Unit        bytes of storages; gradients that meet are added in place, as autograd adds them
    Leaves out  scratch memory inside one operator, buffers of gloo
    Raises      ValueError for another number of ranks than the run has
    """
    if dist.get_world_size() != run.devices.data:
        raise ValueError(f"{dist.get_world_size()} ranks are here; the run has {run.devices.data}")
    torch.manual_seed(0)  # every rank begins with the same weights
    recipe = recipe_for(model, precision)
    net: Any = shard(subject(model, recipe, run), model.layers, run.devices)
    named = dict(net.named_parameters())
    chosen = optimizer(recipe.optimizer, named, loop=loop_of(recipe, run))
    ids_BT = torch.randint(model.vocab, (run.batch, run.tokens or 0))
    held: HELD = {}
    with no_garbage(), StepTracker() as tracker:
        tracker.label([net, chosen])
        tracker.label(ids_BT, "inputs")
        for _ in range(2):
            tracker.reset_peak()
            for number in range(1, run.micro_batches + 1):
                last = number == run.micro_batches
                net.set_requires_gradient_sync(last or run.devices.gradient_sync == "every")
                with tracker.phase("forward"):
                    loss = loss_of(net, ids_BT, run)
                    loss = loss / run.micro_batches if run.micro_batches > 1 else loss
                held["after_forward"] = tracker.current
                tracker.label(list(gathered_weights(net)), "gathered_weights")
                with tracker.phase("backward"):
                    loss.backward()
                del loss
            held["after_backward"] = tracker.current
            with tracker.phase("optimizer"):
                chosen.step()
            chosen.zero_grad()
            held["between_steps"] = tracker.current
            held["peak"], top = tracker.peak, tracker.peak_event
    assert top is not None
    contents = {name: size for name, size in tracker.contents(top.index).items() if size}
    return held | {"phase": top.phase, "op": top.op, "contents": contents}


def several(questions: list[tuple[Model, str, Run]]) -> list[HELD]:
    """`steps` of several questions, so that processes start only once."""
    return [steps(*question) for question in questions]
