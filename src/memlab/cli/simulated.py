"""The simulation behind a ledger, for the moments that stand beside it."""

from __future__ import annotations

from ..base.message import Message
from ..model import Model
from ..recipe import Recipe
from ..run import Run
from ..units import text

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

KEPT_KEYS = (
    "keys and values{more} that the model returns beside its logits where its config's use_cache "
    "is true, as it is by default; counted as with model.config.use_cache = False"
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


def kept_keys(model: Model, recipe: Recipe, how: Run) -> list[str]:
    """What a loop that keeps outputs has of them where nobody has turned the cache off, in a line.

    Source      transformers 5.23: the config's use_cache is true unless it says else, in training
                too, and false with checkpoints; Trainer sets it to false
    """
    told = how.tokens is not None and how.phase == "train" and how.implementation == "transformers"
    own = how.loop == "keeps-outputs" or (how.loop == "plain" and "output" in how.holds)
    if not (told and own) or how.checkpointing != "none" or how.devices.ranks > 1:
        return []
    from ..step import calls

    read = Run(phase="prefill", batch=how.sequences, tokens=how.length, backend=how.backend)
    try:
        size = calls.prefill(model, recipe, read).rows["kv_cache"]
    except ValueError:  # its calls are not described: they return keys and values all the same
        return [Message(KEPT_KEYS, more="")]
    return [Message(KEPT_KEYS, more=Message(" ({size})", size=text(size)))]


def held_at(model: Model, recipe: Recipe, how: Run, found: Any) -> dict[str, int]:
    """Bytes at the quiet moments of a step, with what its loop holds, and first_step, its peak."""
    if not how.holds:
        return {**found.held, "first_step": found.peak.first_step_bytes}
    from ..step.loops.loop import quiet  # only a loop that holds more needs it

    return quiet(model, recipe, how)
