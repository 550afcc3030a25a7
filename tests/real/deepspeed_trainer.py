"""transformers' Trainer under DeepSpeed on real ranks of this machine, one rank's bytes counted.

DeepSpeed is no dependency of memlab: see memlab.lab.deepspeed_steps, whose ranks these are.

B batch of one rank · T tokens · R ranks
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import accumulate
from typing import Any
from unittest.mock import patch

import torch
import torch.distributed as dist

from memlab.lab.deepspeed_steps import TORCHS, config_of, deepspeed_here
from memlab.lab.hugging_face import hugging_face
from memlab.lab.sync_collectives import settled_all_reduce
from memlab.lab.trainers import CONFIG, watched
from memlab.lab.two_steps import Held
from memlab.lab.zero3_ranks import label_parts, settled_collectives
from memlab.measure.step_tracker import StepTracker
from memlab.recipe import Recipe
from memlab.run import Run

# What a ds_config.json leaves to TrainingArguments.
HOSTS = "hosts"
META = "shapes"  # tensors on the meta device, which hold no bytes
AUTO = ("train_micro_batch_size_per_gpu", "gradient_accumulation_steps", "gradient_clipping")


def third_step(recipe: str, run: Run, config: Any = CONFIG, said: Any = None) -> Held:
    """On one of R real ranks: what the third step of Trainer holds, and what is in it at its peak.

    recipe      zero: bf16 beside fp32 copies, as bf16=True makes them of an fp32 checkpoint; or
                fp32
    said        of zero_optimization, what stands there in place of the run's own values: "auto"
    Shapes      every rank reads [B, T] token ids of its own in each micro-batch
    Unit        bytes of storages; gradients that meet are added in place, as autograd adds them
    Leaves out  scratch memory inside one operator, buffers of gloo
    Raises      ValueError where DeepSpeed is not installed, or for another number of ranks
    """
    if dist.get_world_size() != run.devices.data:
        raise ValueError(f"{dist.get_world_size()} ranks are here; the run has {run.devices.data}")
    deepspeed_here()
    torch.nn.functional.linear = TORCHS  # DeepSpeed's function stays after a run that had it
    hugging_face()
    from transformers.integrations import HfDeepSpeedConfig

    third = run.devices.zero == 3
    written = config_of(Recipe.named(recipe), run)
    asked = written | dict.fromkeys(AUTO, "auto") | {"bf16": {"enabled": "auto"}}
    asked["zero_optimization"] = asked["zero_optimization"] | (said or {})
    arguments: dict[str, Any] = {"deepspeed": asked, "use_cpu": False, "bf16": recipe == "zero"}
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        stack.enter_context(_accelerated_here())
        beforehand = HfDeepSpeedConfig(written)  # so that from_config makes parts of weights

        hosts: list[_Hosts] = []

        def prepared(tracker: StepTracker, model: Any, optimizer: Any) -> None:
            settle = settled_collectives if third else settled_all_reduce
            stack.enter_context(settle(tracker))
            _look_at(tracker, model, optimizer.optimizer)
            if run.devices.config.offload_optimizer:
                hosts.append(_Hosts(tracker, optimizer.optimizer))

        seen = watched("fp32", run, folder, config, prepared=prepared, **arguments)
        del beforehand
        return _held(*seen, there=hosts[0].idents() if hosts else set())


def several(questions: list[tuple[Any, ...]]) -> list[Held]:
    """`third_step` of several questions, so that processes start only once."""
    return [third_step(*question) for question in questions]


def _look_at(tracker: StepTracker, model: Any, zero: Any) -> None:
    """Whose each tensor is that DeepSpeed has between steps."""
    tracker.label([model, zero.optimizer])
    if hasattr(zero, "lp_param_buffer"):
        label_parts(tracker, zero)
    else:
        tracker.label(zero.single_partition_of_fp32_groups, "master")
        tracker.label(zero.round_robin_bit16_meta, META)


@contextmanager
def _accelerated_here() -> Iterator[None]:
    """TrainingArguments take this CPU for a GPU, and accelerate does not for "cpu:0".

    That is a device to which it would copy a batch.
    """
    import transformers.training_args as theirs
    from accelerate.state import PartialState

    own = PartialState.__init__

    def begin(self: Any, *arguments: Any, **named: Any) -> None:
        own(self, *arguments, **named)
        self.device = torch.device("cpu")

    local = {"LOCAL_WORLD_SIZE": str(dist.get_world_size())}
    with ExitStack() as stack:
        stack.enter_context(patch.dict(os.environ, local))
        stack.enter_context(patch.object(PartialState, "__init__", begin))
        stack.enter_context(patch.object(theirs, "is_torch_bf16_gpu_available", lambda: True))
        yield


class _Hosts:
    """Which storages are the host's under ZeRO-Offload, though here the device is the host.

    They are what DeepSpeed keeps there, and what its optimizer's step makes before persistent
    weights are gathered again.
    """

    def __init__(self, tracker: StepTracker, zero: Any) -> None:
        self.tracker, self.zero = tracker, zero
        self.spans: list[tuple[int, int]] = []
        self.begun = 0
        third = hasattr(zero, "lp_param_buffer")
        own, after = zero.step, zero._post_step if third else None

        def ends() -> None:
            self.spans.append((self.begun, len(tracker.timeline)))

        def post_step(*given: Any) -> Any:
            ends()
            return after(*given) if after else None

        def step(*given: Any, **named: Any) -> Any:
            self.begun = len(tracker.timeline)
            made = own(*given, **named)
            if not third:
                ends()
            return made

        zero.step = step
        if third:
            zero._post_step = post_step

    def idents(self) -> set[int]:
        """To be asked after the steps."""
        zero, tracker = self.zero, self.tracker
        flats = getattr(zero, "fp32_partitioned_groups_flat", None)
        flats = zero.single_partition_of_fp32_groups if flats is None else flats
        kept: list[Any] = [flats, [flat.grad for flat in flats]]
        kept += [list(zero.optimizer.state[flat].values()) for flat in flats]
        for name in ("grad_partitions_flat_buffer", "inf_or_nan_tracker"):
            kept.append(getattr(zero, name, None))
        kept.append(getattr(zero, "param_buffer_of_bit16_for_cpu_offload_groups", None))
        kept.append(getattr(zero, "temp_grad_buffer_for_cpu_offload", None))
        kept.append(list(getattr(zero, "accumulated_grads_in_cpu", {}).values()))
        tensors = torch.utils._pytree.tree_leaves(kept)
        tracker.label([each for each in tensors if isinstance(each, torch.Tensor)], HOSTS)
        found = {record.ident for record in tracker.records.values() if record.category == HOSTS}
        for begun, ended in self.spans:
            events = tracker.timeline[begun:ended]
            found |= {event.ident for event in events if event.kind == "alloc"}
        return found


def _held(tracker: StepTracker, first: int, last: int, there: set[int]) -> Held:
    """The step's highest moments in backward and outside of it, and what is there at the peak.

    there       numbers of the host's storages, which are not counted
    """
    beside = {r.ident for r, _ in tracker.alive(first) if r.category == META} | there
    changes = (0 if e.ident in beside else e.bytes for e in tracker.timeline)
    totals = list(accumulate(changes))
    step = tracker.timeline[first:last]
    top = max(range(first, last), key=totals.__getitem__)
    contents: dict[str, int] = {}
    for record, size in tracker.alive(top):
        if size and record.ident not in beside:
            contents[record.category] = contents.get(record.category, 0) + size
    inside = [e.index for e in step if e.phase == "backward"]
    after = [e.index for e in step if e.index > inside[-1]]
    return {
        "before": totals[first - 1],
        "peak": totals[top],
        "backward": max(totals[i] for i in inside),
        "after": max(totals[i] for i in after),
        "end": totals[last - 1],
        "phase": tracker.timeline[top].phase,
        "contents": contents,
    }
