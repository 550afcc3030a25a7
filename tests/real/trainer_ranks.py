"""transformers' Trainer with its own FSDP2 on real ranks of this machine, one rank's bytes counted.

B batch of one rank · T tokens · R ranks
"""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import accumulate
from typing import Any
from unittest.mock import patch

import torch
import torch.distributed as dist
from host_beside import Beside, unpinned
from torch.distributed.fsdp import FSDPModule

from memlab.lab.hugging_face import hugging_face
from memlab.lab.sharded_steps import AllGather, ReduceScatter
from memlab.lab.sync_collectives import settled_all_gather
from memlab.lab.trainers import CONFIG, watched
from memlab.lab.two_steps import Held
from memlab.measure.step_tracker import StepTracker
from memlab.run import Run
from memlab.sharding import Sharding

MESHES = "meshes"


def third_step(precision: str, run: Run, config: Any = CONFIG) -> Held:
    """On one of R real ranks: what the third step of Trainer holds, and what is in it at its peak.

    precision   of the checkpoint: fp32 or bf16; bf16=True where run.devices has a param_dtype
    Shapes      every rank reads [B, T] token ids of its own in each micro-batch
    Unit        bytes of storages; gradients that meet are added in place, as autograd adds them
    Leaves out  scratch memory inside one operator, buffers of gloo; the numbers of the ranks, 4
                bytes each, that every group's DeviceMesh has on the host
    Raises      ValueError for another number of ranks than the run has
    """
    if dist.get_world_size() != run.devices.data:
        raise ValueError(f"{dist.get_world_size()} ranks are here; the run has {run.devices.data}")
    arguments: dict[str, Any] = {
        "fsdp": True,
        "fsdp_config": {"reshard_after_forward": run.devices.policy.reshard_after_forward},
        "bf16": run.devices.policy.param_dtype == "bf16",
        "ddp_backend": "gloo",
    }
    if run.devices.policy.replicas > 1:
        arguments["parallelism_config"] = _replicated(run.devices)
    if run.devices.policy.cpu_offload:
        arguments["fsdp_config"]["cpu_offload"] = True
    places: list[Beside] = []
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        stack.enter_context(accelerated_here())
        stack.enter_context(unpinned())

        def prepared(tracker: StepTracker, model: Any, _: Any) -> None:
            stack.enter_context(settled_all_gather(tracker))
            look_at(tracker, model)
            if run.devices.policy.cpu_offload:
                places.append(stack.enter_context(Beside(tracker)))

        seen = watched(precision, run, folder, config, prepared=prepared, **arguments)
    if not places:
        return held(*seen)
    (both,) = places
    return held(*seen, there=both.hosts) | {"host": both.highest(*seen)}


def _replicated(devices: Sharding) -> Any:
    """HSDP, as TrainingArguments is told of it."""
    from accelerate.parallelism_config import ParallelismConfig

    return ParallelismConfig(
        dp_replicate_size=devices.policy.replicas, dp_shard_size=devices.sharers
    )


def several(questions: list[tuple[str, Run, Any]]) -> list[Held]:
    """`third_step` of several questions, so that processes start only once."""
    return [third_step(*question) for question in questions]


@contextmanager
def accelerated_here() -> Iterator[None]:
    """accelerate takes CPUs that talk over gloo for GPUs, without which it shards nothing.

    Source      accelerate 1.15, state.py: AcceleratorState.__init__, where FSDP is for accelerators
    """
    hugging_face()
    from accelerate.state import DistributedType, PartialState

    ranks: dict[str, Any] = {"RANK": dist.get_rank(), "LOCAL_RANK": dist.get_rank()}
    ranks |= {"WORLD_SIZE": dist.get_world_size(), "LOCAL_WORLD_SIZE": dist.get_world_size()}
    ranks |= {"MASTER_ADDR": "localhost", "MASTER_PORT": 29500}
    own = PartialState.__init__

    def begin(self: Any, *arguments: Any, **named: Any) -> None:
        own(self, *arguments, **named)
        if self.distributed_type == DistributedType.MULTI_CPU:
            self.distributed_type = DistributedType.MULTI_GPU
            self.device = torch.device("cpu")  # not "cpu:0", to which a batch would be copied

    said = {name: str(value) for name, value in ranks.items()}
    with patch.dict(os.environ, said), patch.object(PartialState, "__init__", begin):
        yield


def look_at(tracker: StepTracker, model: Any) -> None:
    """The model's groups: collectives that are over when they return, and what is the host's."""
    tracker.label(model)
    for part in model.modules():
        if not isinstance(part, FSDPModule):
            continue
        part.set_custom_all_gather(AllGather(tracker))
        part.set_custom_reduce_scatter(ReduceScatter(tracker))
        for group in part._get_fsdp_state()._fsdp_param_groups:
            tracker.label(group.mesh_info.mesh._rank_map, MESHES)


def held(
    tracker: StepTracker, first: int, last: int, there: Callable[[int], bool] = lambda ident: False
) -> Held:
    """The step's highest moments in backward and outside of it, and what is there at the peak.

    there       whether a storage is the host's, which is not counted
    """
    beside = {r.ident for r, _ in tracker.alive(first) if r.category == MESHES}
    beside |= {event.ident for event in tracker.timeline if there(event.ident)}
    changes = (0 if e.ident in beside else e.bytes for e in tracker.timeline)
    totals = list(accumulate(changes))
    step = tracker.timeline[first:last]
    inside = [e.index for e in step if e.phase == "backward"]
    norms = [e.index for e in step if e.index > inside[-1] and "norm" in e.op]
    top = max(range(first, last), key=totals.__getitem__)
    contents: dict[str, int] = {}
    for record, size in tracker.alive(top):
        if record.ident not in beside and size:
            contents[record.category] = contents.get(record.category, 0) + size
    outside = [e.index for e in step if e.phase != "backward"]
    return {
        "before": totals[first - 1],
        "backward": max(totals[i] for i in inside),
        "elsewhere": max(totals[i] for i in outside),
        "after": max(totals[norms[0] : last]),
        "contents": contents,
    }
