"""What a simulated training step tells: what is held at each moment, the peak, its contents."""

from __future__ import annotations

from ...base.frozen import dataclass
from .saved_table import SavedTable
from .storage_log import Log, Record
from .term_table import Simulated

TERMS = (
    "weights",
    "gathered weights",
    "all-gather buffers",
    "reference",
    "pipeline buffers",
    "buffers",
    "gradients",
    "whole gradients",
    "reduce-scatter buffers",
    "reduce buckets",
    "optimizer",
    "inputs",
    "kv_cache",
    "activations",
    "logits",
    "other",
)


@dataclass(frozen=True)
class Peak:
    """The most bytes of a step, and when.

    moment      forward (up to the output head), loss (while logits or their gradient are alive),
                backward, optimizer, or evaluation between two steps; of a pipeline merge too,
                where the outputs of all micro-batches are joined
    op          the operator whose result reached it
    contents    bytes by term; they add to `bytes`
    micro_batch the first one that reached it, counted from 1; 0 in the optimizer
    """

    bytes: int
    moment: str
    op: str
    contents: dict[str, int]
    first_step_bytes: int
    micro_batch: int


@dataclass(frozen=True, repr=False)
class Step(Simulated):
    """A simulated step in the steady state (the second: optimizer states exist).

    rows        weights, buffers, gradients, optimizer; activations and logits: what autograd keeps
                after the forward pass, before the output head and from it on; kv_cache: what a loop
                that keeps the model's output has there, and autograd with it
    held        all bytes after_forward and after_backward of the last micro-batch, between_steps
    saved       what one layer keeps for backward, tensor by tensor
    log         every allocation and free of both steps
    host        the highest moment of the rank's host, where FSDP2 keeps weights there; else None
    """

    TERMS = TERMS

    rows: dict[str, int]
    held: dict[str, int]
    held_contents: dict[str, dict[str, int]]
    peak: Peak
    saved: SavedTable
    log: Log
    host: Peak | None = None


def term(record: Record) -> str:
    """weights, gradients, optimizer, buffers, inputs, activations, logits or other; under FSDP2
    gathered weights, whole gradients and the buffers of its collectives too; under DeepSpeed its
    master and reduce buckets; of a pipeline's stage
    the buffers that it receives into.

    The weights of a second model, which is not trained, are "reference". Keys and values in an
    output that is kept are "kv_cache", also where autograd keeps them.

    Logits are all copies of them, kept for backward or not, and their gradients.
    """
    rows = len(record.shape) > 1  # and no bias of the output head
    last = getattr(record.shape[-1], "letters", "") if rows else ""
    if record.category in ("activations", "other") and last == "V":
        return "logits"
    return record.category
