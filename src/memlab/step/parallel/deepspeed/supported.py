"""What is described of a step under DeepSpeed's ZeRO, and what is refused, by name."""

from __future__ import annotations

from ....base.not_described import NotDescribed
from ....families import proven, record_of
from ....model import Model
from ....recipe import Recipe
from ....run import Run
from ..supported import BY_VALUE, check_said, undescribed
from .zero12 import WIDE

# What no step under DeepSpeed is described beside.
ALONE = (
    *("lora", "adapter", "frozen", "offload", "step_in_backward", "loss"),
    *("eval_batch", "eval_logits"),
)
LOOPS = ("plain", "trainer")  # which run it here


def check(model: Model, recipe: Recipe, run: Run) -> None:
    """Refuse what is not described of a step under DeepSpeed.

    Raises      ValueError that names it
    """
    beside = f"is not described beside DeepSpeed's ZeRO {run.devices.zero}"
    check_said(run, ALONE, beside)
    master = recipe.master if recipe.weights == "bf16" else WIDE
    beside_them = recipe.accumulator or recipe.gradients not in (None, recipe.weights)
    if (recipe.weights, master) not in (("bf16", WIDE), (WIDE, WIDE)) or beside_them:
        raise NotDescribed(
            f"recipe {recipe.name!r} {beside}, which updates an fp32 copy; known: 'zero', 'fp32'"
        )
    if run.loop not in LOOPS:
        raise undescribed(f"loop={run.loop!r}", beside, ", ".join(LOOPS))
    if recipe.autocast and run.loop == "trainer":
        raise NotDescribed(
            f"autocast={recipe.autocast!r} with loop='trainer' {beside}: bf16=True is no autocast "
            "there; say recipe 'zero', bf16 weights beside an fp32 copy"
        )
    if recipe.autocast:
        raise undescribed(f"autocast={recipe.autocast!r}", beside)
    if recipe.optimizer not in BY_VALUE:
        raise undescribed(recipe.optimizer, beside, ", ".join(BY_VALUE))
    if run.devices.zero == 3:
        _check_third(model, run, beside)
    if run.devices.zero == 1 and run.devices.config.overlap_comm and run.micro_batches > 1:
        raise NotDescribed(f"overlap_comm=True with micro_batches={run.micro_batches} {beside}")


def _check_third(model: Model, run: Run, beside: str) -> None:
    """Stage 3 asks which module is called when, so its families are few."""
    if run.implementation != "transformers" or not record_of(model.family).proves("zero3"):
        raise NotDescribed(
            f"{run.implementation} {model.family!r} {beside}; known: transformers' "
            + ", ".join(proven("zero3"))
        )
    check_said(run, ("texts", "holds"), beside)
