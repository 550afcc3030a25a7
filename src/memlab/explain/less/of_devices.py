"""Several devices that divide more than was told, or hold less at once."""

from __future__ import annotations

from ...base.frozen import replace
from ...recipe.parallelism import Sharding
from ...run import Run
from ..case import Case, of_run
from ..causes.cause import SELDOM, SOMETIMES, Cause

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

COUNTS = (2, 4, 8, 16, 32, 64)
WRAPPED = "print(type(next(model.parameters())), torch.distributed.get_world_size())"


def _over(case: Case, count: int) -> Case | None:
    """FSDP2 over so many, where one device was told or fewer of FSDP2."""
    there = case.run.devices
    if case.run.tokens is None or not (there.ranks == 1 or there.fsdp) or count <= there.data:
        return None
    how: dict[str, Any] = {"data": count, "zero": 3}
    if case.run.loop == "trainer" and case.run.micro_batches > 1:
        how["gradient_sync"] = "last"
    return case.replace(run=case.run.replace(devices=replace(there, **how)))


def _next(case: Case) -> Case | None:
    return _over(case, 2 * case.run.devices.data)


def _ranks(case: Case, gap: int) -> tuple[Case, int] | None:
    """The number of ranks whose peak comes nearest."""
    goal, found = case.peak() - gap, None
    for count in COUNTS:
        over = _over(case, count)
        if over and (found is None or abs(over.peak() - goal) < abs(found[0].peak() - goal)):
            found = over, count
    return found


def _stage_above(run: Run) -> Run | None:
    there = run.devices
    if not there.deepspeed or there.zero == 3:
        return None
    library = "deepspeed" if there.zero == 2 else there.library
    return run.replace(devices=replace(there, zero=there.zero + 1, library=library))


def _fsdp(**how: Any) -> Any:
    """A policy of FSDP2's that was not told."""

    def turn(run: Run) -> Run | None:
        return run.replace(devices=replace(run.devices, **how)) if run.devices.fsdp else None

    return of_run(turn)


def _as_soon(run: Run) -> Run | None:
    there = run.devices
    late = there.pipelined and there.schedule == "gpipe"
    return run.replace(devices=replace(there, schedule="1f1b")) if late else None


def _one_replica(run: Run) -> Run | None:
    there = run.devices
    if not there.fsdp or there.replicas == 1:
        return None
    how: dict[str, Any] = {"replicas": 1}
    if there.gradient_sync == "shards":
        how["gradient_sync"] = Sharding.gradient_sync
    return run.replace(devices=replace(there, **how))


DEVICES = (
    Cause("divided with FSDP2; ranks", SOMETIMES, "devices", _next, WRAPPED, sized=_ranks),
    Cause(
        "DeepSpeed's ZeRO one stage higher",
        SOMETIMES,
        "devices",
        of_run(_stage_above),
        "print(engine.zero_optimization_stage())",
    ),
    Cause("divided among all ranks, not a part", SELDOM, "devices", of_run(_one_replica), WRAPPED),
    Cause(
        "layers let go after their forward pass",
        SOMETIMES,
        "reshard",
        _fsdp(reshard_after_forward=True),
        "is reshard_after_forward=False on each layer?",
    ),
    Cause(
        "weights gathered in bf16",
        SOMETIMES,
        "policy",
        _fsdp(param_dtype="bf16"),
        "print(logits.dtype); is mp_policy=MixedPrecisionPolicy(param_dtype=...) on each layer?",
    ),
    Cause(
        "gradients reduced after every micro-batch",
        SOMETIMES,
        "sync",
        _fsdp(gradient_sync="every"),
        "look for no_sync() and set_requires_gradient_sync(False)",
    ),
    Cause(
        "weights and states on the hosts",
        SELDOM,
        "hosts",
        _fsdp(cpu_offload="pinned"),
        "print({p.device for p in model.parameters()}) between two steps",
    ),
    Cause(
        "backward as soon as it can, not GPipe",
        SOMETIMES,
        "schedule",
        of_run(_as_soon),
        "print(type(schedule))",
    ),
)
