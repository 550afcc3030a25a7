"""Which operators a simulated step takes: those of one device, or of one rank among several.

Every other module here knows one way to divide a step; this one knows all of them, and asks each
whether it can do what the run says before any operator is made.
"""

from __future__ import annotations

from ..model import Model
from ..recipe import Recipe
from ..run import Run
from . import deepspeed, deepspeed_checks
from .accelerated import Accelerated
from .dispatched import Dispatched
from .divided import Divided
from .fsdp_checks import check_sharded
from .networks import LLAMAS
from .ops import Ops
from .ringed import Ringed, check_ringed
from .sharded import Sharded
from .zero3 import Zero3

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any


def operators(
    model: Model, recipe: Recipe, dtype: str, run: Run, *, in_place: bool, rank: int = 0
) -> tuple[Ops, str]:
    """The operators, on what one rank has of each weight, and the format that they compute in."""
    options: dict[str, Any] = {"backend": run.backend, "in_place": in_place}
    if run.devices.tensor_parallel:
        cut = Divided(recipe.autocast, model=model, devices=run.devices, **options)
        return cut, dtype
    if run.devices.deepspeed:
        deepspeed_checks.check(model, recipe, run)
        kind: Any = Zero3 if run.devices.zero == 3 else deepspeed.Zero
        options |= {"trainers": run.loop == "trainer", "clips": run.clips}
        zero: Any = kind(stored=dtype, devices=run.devices, rank=rank, **options)
        return zero, dtype
    if not run.devices.fsdp:
        return Ops(recipe.autocast, **options), dtype
    check_sharded(model, recipe, run)
    told: dict[str, Any] = {"stored": dtype, "devices": run.devices, **options}
    if run.lora is not None:
        told["beside"] = run.adapters_in(dtype)
    if run.devices.expert > 1:
        f: Sharded = Dispatched(recipe.autocast, tied=model.tied, **told)
    elif run.devices.context > 1:
        check_ringed(model, recipe, run)
        f = Ringed(recipe.autocast, **told)
    elif run.loop == "trainer":
        told["loses_norm"] = run.lora is not None and model.family in LLAMAS
        f = Accelerated(recipe.autocast, tied=model.tied, **told)
    else:
        f = Sharded(recipe.autocast, **told)
    return f, f.computed
