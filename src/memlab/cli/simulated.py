"""The simulation behind a ledger, for the moments that stand beside it."""

from __future__ import annotations

from ..model import Model
from ..recipe import Recipe
from ..run import Run

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

ONE_TEXT = (
    "texts='packed' and outputs that are kept: beside the keys and values in them transformers "
    "looks for no second text in a row, whose tokens then see those of others; counted like that. "
    "model.config.use_cache = False has no such keys, and each text by itself"
)


def simulated(model: Model, recipe: Recipe, how: Run) -> Any:
    """A Step, or the Call of an inference; None where a closed form answers, or there is no step.

    The loop's own bytes (`Run.holds`) are not in it but for its output: memlab.estimate adds them,
    and `held_at`.
    """
    if how.tokens is None or (how.phase != "train" and how.implementation == "memlab"):
        return None
    if how.phase == "train":
        from ..step.loops.loop import step_of

        return step_of(model, recipe, how)
    from ..step import calls

    call = calls.prefill if how.phase == "prefill" else calls.decode
    return call(model, recipe, how)


def one_text(model: Model, how: Run) -> list[str]:
    """What becomes of several texts in a row where outputs are kept, in a line.

    Source      transformers 5.23, masking_utils.py: _preprocess_mask_arguments
    """
    if how.phase != "train" or how.texts != "packed" or how.attention == "flash_attention_2":
        return []
    from ..step.kv_cache import keeps_keys

    return [ONE_TEXT] if keeps_keys(how, model.config) else []


def held_at(model: Model, recipe: Recipe, how: Run, found: Any) -> dict[str, int]:
    """Bytes at the quiet moments of a step, with what its loop holds, and first_step, its peak."""
    if not how.holds:
        return {**found.held, "first_step": found.peak.first_step_bytes}
    from ..step.loops.loop import quiet  # only a loop that holds more needs it

    return quiet(model, recipe, how)
