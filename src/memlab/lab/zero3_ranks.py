"""DeepSpeed's stage 3 under a tracker: collectives that are over, and what its parts are for."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor

from ..measure.tracker import Tracker
from .sync_collectives import settled, settled_all_reduce


class _Over:
    """What stands for the handle of a collective that has been waited for."""

    def wait(self) -> None:
        """Nothing is left to wait for."""


@contextmanager
def settled_collectives(tracker: Tracker) -> Iterator[None]:
    """Settle each collective that stage 3 asks for, as soon as it is asked for.

    The bytes are those of one that is waited for later: its buffers are the caller's, and live as
    long as the handle that DeepSpeed has of them.
    """
    from deepspeed import comm

    backend: Any = comm.comm.cdb
    gather, reduce = backend.all_gather_function, backend.reduce_scatter_function

    def all_gather(
        *, output_tensor: Tensor, input_tensor: Tensor, group: Any, async_op: bool
    ) -> Any:
        with settled(tracker, output_tensor, input_tensor):
            work = gather(output_tensor, input_tensor, group=group, async_op=async_op)
            if work is not None:
                work.wait()
            del work
        return _Over()

    def reduce_scatter(output: Tensor, given: Tensor, **more: Any) -> Any:
        with settled(tracker, output, given):
            return reduce(output, given, **more)

    backend.all_gather_function = all_gather
    backend.reduce_scatter_function = reduce_scatter
    try:
        with settled_all_reduce(tracker):
            yield
    finally:
        backend.all_gather_function = gather
        backend.reduce_scatter_function = reduce


def label_parts(tracker: Tracker, zero: Any) -> None:
    """Say what belongs to whom of what DeepSpeed's optimizer has between steps."""
    tracker.label(zero.lp_param_buffer, "weights")
    tracker.label(zero.fp32_partitioned_groups_flat, "master")
    tracker.label(zero.grad_partitions_flat_buffer, "gradients")
    tracker.label(zero.inf_or_nan_tracker, "other")
    for bucket in zero.ipg_buckets.values():
        if bucket.buffer is not None:
            tracker.label(bucket.buffer, "reduce buckets")
