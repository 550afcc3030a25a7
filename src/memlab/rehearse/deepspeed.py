"""DeepSpeed on a card that is not there: its own code, with kernels that do nothing.

DeepSpeed compiles its kernels when they are asked for. Those of its optimizers write into tensors
that are there and allocate nothing, so nothing stands in their place; another kernel is refused by
its name.

Source      DeepSpeed 0.19: accelerator/real_accelerator.py, ops/op_builder/builder.py
Leaves out  NVMe, and what a host's own memory takes beside its tensors
"""

import sys
from functools import partial
from typing import Any

from ..measure.fake_cuda.assumed import Assumed
from ..measure.fake_cuda.refused import Refused
from ..measure.fake_cuda.undo import Changes
from .kernels import Nothing

VARIABLES = {"DS_ACCELERATOR": "cuda"}  # it would look for a card before one is shown
IN_PLACE = ("fused_adam", "fused_lamb", "fused_lion", "cpu_adam", "cpu_adagrad", "cpu_lion")
# What each rank asks of the first one, which is not here.
AGREED = ("assert_lst_len_same_as_other_ranks", "assert_ints_same_as_other_ranks")


def deepspeed(changes: Changes, assumed: Assumed) -> None:
    """Let DeepSpeed begin as in a process of its own, if it was imported."""
    builder = sys.modules.get("deepspeed.ops.op_builder.builder")
    if builder is None:
        return
    changes.remembered("deepspeed")
    changes.replace(sys.modules["deepspeed.accelerator.real_accelerator"], "ds_accelerator", None)
    for name in AGREED:
        asks = getattr(sys.modules.get("deepspeed.runtime.zero.utils"), name, None)
        if asks is not None:
            changes.everywhere(asks, partial(_agreed))
    linear = sys.modules["torch.nn.functional"]
    changes.replace(linear, "linear", linear.linear)  # stage 3 puts its own there, for good

    def load(op: Any, *_: Any, **__: Any) -> Any:
        if op.name not in IN_PLACE:
            raise Refused(f"DeepSpeed's kernel {op.name} is not rehearsed")
        assumed.skip("DeepSpeed's kernel {name}, which allocates nothing", name=op.name)
        return Nothing()

    changes.replace(builder.OpBuilder, "load", load)


def _agreed(*_: Any, **__: Any) -> None:
    return None
