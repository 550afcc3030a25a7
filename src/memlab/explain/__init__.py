"""Why a run needs more than was predicted, and what would make it need less."""

from __future__ import annotations

from ..run import Run

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

    from ..model import Model
    from ..recipe import Recipe


def explain(
    model: Model | None, recipe: Recipe | str | None, run: Run | None, *, seen: Any, **known: Any
) -> Any:
    """What can account for the bytes between a prediction and what was seen.

    seen        bytes, a text such as "80 GB", PyTorch's out-of-memory message, or a file that
                memlab.files.observation reads
    Result      an `Explanation`: memlab.explain.explanation.explain says all about it
    Raises      ValueError without a model; what memlab.explain.explanation.explain raises
    """
    from ..files.observation import seen as look
    from .explanation import explain

    if model is None:
        raise ValueError("seen without a model: what was predicted?")
    if not isinstance(seen, int):
        found = look(str(seen), known.pop("level", None))
        seen, known["level"] = found.amount, found.level
        known = {"at_least": found.at_least, "rounded_to": found.rounding} | known
    return explain(model, recipe, run or Run(), seen=seen, **known)
