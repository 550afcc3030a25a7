"""Which operators a simulated step takes: those of one device, or of one rank among several.

Every other module here knows one way to divide a step; this one knows all of them, and asks each
whether it can do what the run says before any operator is made. It imports the one that is asked
for, which most runs are not.
"""

from __future__ import annotations

from ...families import record_of
from ...model import Model
from ...recipe import Recipe
from ...run import Run
from ..ops import Ops

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any


def operators(
    model: Model, recipe: Recipe, dtype: str, run: Run, *, in_place: bool, rank: int = 0
) -> tuple[Ops, str]:
    """The operators, on what one rank has of each weight, and the format that they compute in."""
    options: dict[str, Any] = {"backend": run.backend, "in_place": in_place}
    if run.devices.tensor_parallel:
        from ..parallel.tensor_parallel import TensorParallelOps

        cut = TensorParallelOps(recipe.autocast, model=model, devices=run.devices, **options)
        return cut, dtype
    if run.devices.deepspeed:
        from ..parallel.deepspeed import supported, zero3, zero12

        supported.check(model, recipe, run)
        kind: Any = zero3.Zero3 if run.devices.zero == 3 else zero12.Zero
        options |= {"trainers": run.loop == "trainer", "clips": run.clips}
        zero: Any = kind(stored=dtype, devices=run.devices, rank=rank, **options)
        return zero, dtype
    if not run.devices.fsdp:
        return Ops(recipe.autocast, **options), dtype
    from ..parallel.fsdp.fsdp2 import FsdpOps
    from ..parallel.fsdp.supported import check_sharded

    check_sharded(model, recipe, run)
    told: dict[str, Any] = {"stored": dtype, "devices": run.devices, **options}
    if run.lora is not None:
        told["beside"] = run.adapters_in(dtype)
    if run.devices.experts.ranks > 1:
        from ..parallel.expert_parallel import ExpertParallelOps

        f: FsdpOps = ExpertParallelOps(recipe.autocast, tied=model.tied, **told)
    elif run.devices.context > 1:
        from ..parallel.context_parallel import RingAttentionOps, check_ringed

        check_ringed(model, recipe, run)
        f = RingAttentionOps(recipe.autocast, **told)
    elif run.loop == "trainer":
        from ..parallel.fsdp.trainer import AccelerateFsdpOps

        inside_model = record_of(model.family).layers_path.startswith("model.")
        told["loses_norm"] = run.lora is not None and inside_model
        f = AccelerateFsdpOps(recipe.autocast, tied=model.tied, **told)
    else:
        f = FsdpOps(recipe.autocast, **told)
    return f, f.computed
