"""What cannot be asked: no model or no run, and fields of a run that contradict each other."""

from __future__ import annotations

from ..base.message import Message
from ..sharding import Sharding
from . import adapters, loop_rules
from .fields import OF_CALLS, OF_TRAINING
from .offload import check_offload

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Collection

    from .run import Run


def only(run: Run, fields: Collection[str], what: str, remedy: str) -> None:
    """Refuse every field that a run says and an answer does not use: none may be passed over.

    fields      those that the answer uses, and those that cannot change it; a field that is new to
                Run is refused until it stands there
    what        the answer, and of which model
    remedy      what would be right
    Raises      ValueError that names the field and its value
    """
    for field, value in run.said().items():
        if field not in fields:
            said = adapters.shown(value)
            raise ValueError(f"{field}={said} is not described for {what}; {remedy}")


def check(run: Run) -> None:
    """Refuse fields that contradict each other, in a training step or in a call.

    Raises      ValueError and TypeError that name the field, its value and what would be right
    """
    adapters.check(run)
    if not isinstance(run.devices, Sharding):
        raise TypeError(f"devices={run.devices!r}; a Sharding is needed")
    if run.backend == "cpu" and run.attention in ("flash", "flash_attention_2"):
        raise ValueError(
            f"attention={run.attention!r} is CUDA's; on a CPU sdpa or eager is described"
        )
    if run.backend == "cpu" and run.kernel != "auto":
        raise ValueError(f"kernel={run.kernel!r} is a choice of CUDA; on a CPU there is none")
    if run.implementation == "memlab" and run.attention == "eager":
        raise ValueError("attention='eager' is in transformers only; memlab's is sdpa")
    if run.phase == "train":
        _training(run)
    else:
        _call(run)


def _call(run: Run) -> None:
    for field in OF_TRAINING:
        if getattr(run, field) != getattr(type(run), field):
            value = adapters.shown(getattr(run, field))
            raise ValueError(f"{field}={value} is for training; this is {run.phase}")
    if run.tokens is None:
        raise ValueError(f"phase={run.phase!r} needs tokens")
    if run.phase == "decode" and run.logits != "all":
        raise ValueError(f"logits={run.logits!r} is for prefill; decode makes one row")


def _training(run: Run) -> None:
    if run.tokens == 1:
        raise ValueError("tokens=1; at least 2 are needed: each is to predict the next")
    if run.loss_chunks is not None and run.loss != "chunked":
        raise ValueError(f"loss_chunks={run.loss_chunks} without loss='chunked'")
    loop_rules.check(run)
    if run.tokens is not None and run.chunks > run.rows:
        pattern = "loss_chunks={chunks}; between 1 and {rows} (the rows) is needed"
        raise ValueError(Message(pattern, chunks=run.chunks, rows=run.rows))
    for field in OF_CALLS:
        if getattr(run, field) != getattr(type(run), field):
            raise ValueError(f"{field}={getattr(run, field)!r} is for prefill and decode")
    if run.step_in_backward and run.micro_batches > 1:
        raise ValueError(
            f"step_in_backward with {run.micro_batches} micro-batches: each would be a step "
            "of its own, for no gradient stays to be added to"
        )
    if run.step_in_backward and run.clip:
        raise ValueError("clip=True with step_in_backward: no norm of all gradients is ever there")
    check_offload(run)
    if run.tokens is not None and run.devices.pipelined:
        _micro_batches(run)


def _micro_batches(run: Run) -> None:
    """Refuse a number of micro-batches that the schedule of a pipeline does not take.

    Source      torch, torch/distributed/pipelining/schedules.py: Schedule1F1B,
                ScheduleInterleaved1F1B, ScheduleInterleavedZeroBubble
    """
    count, ranks, schedule = run.micro_batches, run.devices.pipeline, run.devices.schedule.name
    if schedule == "1f1b" and count < ranks:
        raise ValueError(
            f"micro_batches={count} with schedule='1f1b'; at least as many as its {ranks} ranks "
            "are needed"
        )
    rounds = max(1, count // ranks)
    if schedule.startswith("interleaved") and count % rounds:
        raise ValueError(
            f"micro_batches={count} with schedule={schedule!r}; a multiple of its {rounds} rounds "
            f"of {ranks} is needed"
        )
