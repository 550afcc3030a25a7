"""Several devices that divide less than was believed, or more; that hold more at once, or less.

Beside several devices what a loop holds is not described (memlab.step.loops.loop), so that
these, formats and how a step is executed are what is asked.
"""

from __future__ import annotations

from ...run import Run
from ...sharding import FsdpPolicy, Sharding
from ..case import Case, of_run
from .cause import SELDOM, SOMETIMES, Cause
from .turns import closest, divided, fsdp_with

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

COUNTS = (2, 4, 8, 16, 32, 64)
DTENSOR = "on one rank print(type(next(model.parameters()))): is it a DTensor?"
WRAPPED = "print(type(next(model.parameters())), torch.distributed.get_world_size())"
STAGE = "print(engine.zero_optimization_stage())"
RESHARD = "fully_shard(layer, reshard_after_forward=True) on each layer: does the peak fall?"
NO_RESHARD = "is reshard_after_forward=False on each layer?"
POLICY = "print(logits.dtype); is mp_policy=MixedPrecisionPolicy(param_dtype=...) on each layer?"
SYNC = "look for no_sync() and set_requires_gradient_sync(False)"
HOSTS = "print({p.device for p in model.parameters()}) between two steps"
EXPERTS = "print(model.config.distributed_config)"
TOKENS = "count the tokens of each rank's experts: is the auxiliary loss on?"
SCHEDULE = "print(type(schedule))"
GPIPE = f"{SCHEDULE}: ScheduleGPipe?"
KEYS = ("reduce_bucket_size", "overlap_comm", "contiguous_gradients", "offload_optimizer")


@of_run
def _whole_model(run: Run) -> Run | None:
    """Each rank has all of it: what wraps the model was never reached, or wraps another one."""
    there = run.devices
    return run.replace(devices=Sharding()) if there.fsdp or there.deepspeed else None


@of_run
def _stage_below(run: Run) -> Run | None:
    there = run.devices
    if not there.deepspeed or there.zero == 1:
        return None
    usual = Sharding(data=there.data, zero=there.zero - 1)
    return run.replace(devices=usual.changed(**{key: getattr(there.config, key) for key in KEYS}))


@of_run
def _stage_above(run: Run) -> Run | None:
    there = run.devices
    if not there.deepspeed or there.zero == 3:
        return None
    library = "deepspeed" if there.zero == 2 or there.by_deepspeed else None
    return divided(run, zero=there.zero + 1, library=library)


@of_run
def _unreduced(run: Run) -> Run | None:
    many = run.devices.fsdp and run.micro_batches > 1
    return divided(run, gradient_sync="last") if many else None


@of_run
def _on_cards(run: Run) -> Run | None:
    """Weights, gradients and states are on the cards, not on their hosts."""
    away = [f for f in ("offload_optimizer", "offload_param") if getattr(run.devices.config, f)]
    if away:
        return divided(run, **dict.fromkeys(away))
    return divided(run, cpu_offload=None) if run.devices.fsdp else None


@of_run
def _one_rank_for_all(run: Run) -> Run | None:
    many = run.devices.fsdp and run.devices.experts.ranks > 1
    return divided(run, routing="fullest") if many else None


@of_run
def _all_in_flight(run: Run) -> Run | None:
    there = run.devices
    if not there.pipelined or there.schedule.name == "gpipe":
        return None
    return divided(run, schedule="gpipe", stages_per_rank=1)


@of_run
def _as_soon(run: Run) -> Run | None:
    late = run.devices.pipelined and run.devices.schedule.name == "gpipe"
    return divided(run, schedule="1f1b") if late else None


@of_run
def _one_replica(run: Run) -> Run | None:
    there = run.devices
    if not there.fsdp or there.policy.replicas == 1:
        return None
    each = there.policy.gradient_sync == "shards"
    return divided(run, replicas=1, **({"gradient_sync": FsdpPolicy.gradient_sync} if each else {}))


def _over(case: Case, count: int) -> Case | None:
    """FSDP2 over so many, where one device was told or fewer of FSDP2."""
    there = case.run.devices
    if case.run.tokens is None or not (there.ranks == 1 or there.fsdp) or count <= there.data:
        return None
    how: dict[str, Any] = {"data": count, "zero": 3}
    if case.run.loop == "trainer" and case.run.micro_batches > 1:
        how["gradient_sync"] = "last"
    return case.replace(run=divided(case.run, **how))


def _next(case: Case) -> Case | None:
    return _over(case, 2 * case.run.devices.data)


def _ranks(case: Case, gap: int) -> tuple[Case, int] | None:
    """The number of ranks whose peak comes nearest."""
    return closest(((_over(case, count), count) for count in COUNTS), case.peak() - gap)


WHOLE, LATE = "nothing sharded: each rank has the whole model", "layers gathered until backward"
UNREDUCED = "whole gradients until the last micro-batch"
EACH = "gradients reduced after every micro-batch"
ON_CARDS = "weights and states on the cards, not on their hosts"
IN_FLIGHT = "all micro-batches forward before the first goes backward"
SOONER = "layers let go after their forward pass"
MORE = (
    Cause(WHOLE, SOMETIMES, "devices", _whole_model, DTENSOR),
    Cause("DeepSpeed's ZeRO one stage lower", SOMETIMES, "devices", _stage_below, STAGE),
    Cause(LATE, SOMETIMES, "devices", fsdp_with(reshard_after_forward=False), RESHARD),
    Cause(
        "weights gathered as they are stored",
        SOMETIMES,
        "policy",
        fsdp_with(param_dtype=None),
        POLICY,
    ),
    Cause(UNREDUCED, SOMETIMES, "sync", _unreduced, SYNC),
    Cause(ON_CARDS, SOMETIMES, "hosts", _on_cards, HOSTS),
    Cause(
        "experts gathered, not divided",
        SOMETIMES,
        "experts",
        fsdp_with(expert=1, routing="even"),
        EXPERTS,
    ),
    Cause("all tokens at one rank's experts", SELDOM, "experts", _one_rank_for_all, TOKENS),
    Cause(IN_FLIGHT, SOMETIMES, "schedule", _all_in_flight, GPIPE),
)
LESS = (
    Cause("divided with FSDP2; ranks", SOMETIMES, "devices", _next, WRAPPED, sized=_ranks),
    Cause("DeepSpeed's ZeRO one stage higher", SOMETIMES, "devices", _stage_above, STAGE),
    Cause("divided among all ranks, not a part", SELDOM, "devices", _one_replica, WRAPPED),
    Cause(SOONER, SOMETIMES, "reshard", fsdp_with(reshard_after_forward=True), NO_RESHARD),
    Cause("weights gathered in bf16", SOMETIMES, "policy", fsdp_with(param_dtype="bf16"), POLICY),
    Cause(EACH, SOMETIMES, "sync", fsdp_with(gradient_sync="every"), SYNC),
    Cause(
        "weights and states on the hosts", SELDOM, "hosts", fsdp_with(cpu_offload="pinned"), HOSTS
    ),
    Cause("backward as soon as it can, not GPipe", SOMETIMES, "schedule", _as_soon, SCHEDULE),
)
