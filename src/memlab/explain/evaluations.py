"""An evaluation whose logits wait on the device, as a cause: as many batches as fill a gap."""

from __future__ import annotations

from ..run.fields import MOST_PARTS
from ..step.loops.loop import tops
from .case import Case

OWN = 8  # sequences of a batch: TrainingArguments.per_device_eval_batch_size
FEW, MANY = 64, 128  # batches; from about a dozen on, each adds the same


def gathers(case: Case) -> Case | None:
    """The case with one batch more whose logits are kept; None where no loop does that."""
    run = case.run
    return None if run.tokens is None else _with(case, run.eval_logits + 1)


def gathered(case: Case, gap: int) -> tuple[Case, int] | None:
    """The case with the number of batches that comes nearest to the gap, and that number."""
    few, many = _with(case, FEW), _with(case, MANY)
    if few is None or many is None:
        return None
    low, high = _highest(few), _highest(many)
    each = (high - low) // (MANY - FEW)
    count = FEW + round((case.peak() + gap - low) / each)
    made = _with(case, min(max(1, count), MOST_PARTS))
    return None if made is None else (made, made.run.eval_logits)


def _with(case: Case, count: int) -> Case | None:
    """None where the loop has no evaluation, or not in such a run."""
    run = case.run
    if run.loop != "trainer" or run.tokens is None or not run.eval_logits < count:
        return None
    try:
        made = run.replace(eval_batch=run.eval_batch or OWN, eval_logits=count)
    except ValueError:  # beside adapters
        return None
    return case.replace(run=made)


def _highest(case: Case) -> int:
    found = tops(case.model, case.recipe, case.run, stored=case.stored)
    return sum(found["evaluation"].values())
