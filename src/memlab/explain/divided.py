"""What several devices may do otherwise than was believed: each a function of a run, or None.

A cause turns a run into one that takes more. Beside several devices what a loop holds is not
described (memlab.step.loop), so that these, formats, and how a step is executed are what is asked.
"""

from __future__ import annotations

from ..base.frozen import replace
from ..recipe.parallelism import Sharding
from ..run import Run

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any


def whole_model(run: Run) -> Run | None:
    """Each rank has all of it: what wraps the model was never reached, or wraps another one."""
    there = run.devices
    return run.replace(devices=Sharding()) if there.fsdp or there.deepspeed else None


def stage_below(run: Run) -> Run | None:
    """DeepSpeed's ZeRO one stage lower than was believed."""
    there = run.devices
    if not there.deepspeed or there.zero == 1:
        return None
    usual = Sharding(data=there.data, zero=there.zero - 1)
    keys = ("reduce_bucket_size", "overlap_comm", "contiguous_gradients", "offload_optimizer")
    return run.replace(devices=replace(usual, **{key: getattr(there, key) for key in keys}))


def kept(run: Run) -> Run | None:
    """FSDP2's layers stay gathered from forward to backward."""
    return _fsdp(run, reshard_after_forward=False)


def wide(run: Run) -> Run | None:
    """FSDP2 gathers weights as they are stored, without a MixedPrecisionPolicy."""
    return _fsdp(run, param_dtype=None)


def unreduced(run: Run) -> Run | None:
    """Whole gradients until the last micro-batch."""
    return _fsdp(run, gradient_sync="last") if run.micro_batches > 1 else None


def on_cards(run: Run) -> Run | None:
    """Weights, gradients and states are on the cards, not on their hosts."""
    if run.devices.offload_optimizer:
        return run.replace(devices=replace(run.devices, offload_optimizer=None))
    return _fsdp(run, cpu_offload=None)


def gathered_experts(run: Run) -> Run | None:
    """A mixture's experts are gathered like all else, not divided."""
    return _fsdp(run, expert=1, routing="even")


def one_rank_for_all(run: Run) -> Run | None:
    """All tokens choose the experts of one rank."""
    return _fsdp(run, routing="fullest") if run.devices.expert > 1 else None


def all_in_flight(run: Run) -> Run | None:
    """A pipeline runs all micro-batches forward before the first goes backward."""
    there = run.devices
    if not there.pipelined or there.schedule == "gpipe":
        return None
    return run.replace(devices=replace(there, schedule="gpipe", stages_per_rank=1))


def _fsdp(run: Run, **how: Any) -> Run | None:
    return run.replace(devices=replace(run.devices, **how)) if run.devices.fsdp else None
