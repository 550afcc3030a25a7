"""What cannot be asked: no model or no run, and fields of a run that contradict each other."""

from __future__ import annotations

from . import programs
from .recipe.offloaded import check_offload

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from .run import Run


def asked(model: object, run: object) -> None:
    """Refuse a name or a dict in the place of a model or a run, at every door.

    Raises      TypeError that says how one is made
    """
    from .model import Model
    from .run import Run

    if not isinstance(model, Model):
        raise TypeError(f"model={model!r} is a {type(model).__name__}; Model.preset(...) makes one")
    if not isinstance(run, Run):
        raise TypeError(f"run={run!r} is a {type(run).__name__}; a memlab.Run is needed")


def training(run: Run) -> None:
    """Refuse fields of a training step that contradict each other.

    Raises      ValueError that names the field, its value and what would be right
    """
    if run.tokens == 1:
        raise ValueError("tokens=1; at least 2 are needed: each is to predict the next")
    if run.loss_chunks is not None and run.loss != "chunked":
        raise ValueError(f"loss_chunks={run.loss_chunks} without loss='chunked'")
    programs.check(run)
    if run.tokens is not None and run.chunks > run.rows:
        raise ValueError(f"loss_chunks={run.chunks}; between 1 and {run.rows} (the rows) is needed")
    for field in ("logits", "inference_mode"):
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

    Source      torch 2.13, torch/distributed/pipelining/schedules.py: Schedule1F1B,
                ScheduleInterleaved1F1B
    """
    count, ranks, schedule = run.micro_batches, run.devices.pipeline, run.devices.schedule
    if schedule == "1f1b" and count < ranks:
        raise ValueError(
            f"micro_batches={count} with schedule='1f1b'; at least as many as its {ranks} ranks "
            "are needed"
        )
    rounds = max(1, count // ranks)
    if schedule == "interleaved1f1b" and count % rounds:
        raise ValueError(
            f"micro_batches={count} with schedule={schedule!r}; a multiple of its {rounds} rounds "
            f"of {ranks} is needed"
        )
