"""Why a run needs more than was predicted, and what would make it need less."""

from __future__ import annotations

from ..run import Run

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

    from ..model import Model
    from ..recipe import Recipe


def explain(
    model: Model | None = None,
    recipe: Recipe | str | None = None,
    run: Run | None = None,
    *,
    seen: Any = None,
    **known: Any,
) -> Any:
    """What can account for the bytes between a prediction and what was seen.

    With `seen`     an `Explanation`: memlab.explain.explanation.explain says all about it. A size,
                    the file of a timeline or of a memory snapshot
    Without         a context manager that watches a run and knows: memlab.measure.live.Live
    Example         with explain(model, "bf16", Run(batch=8, tokens=64)) as live: train()
    """
    if seen is None:
        from ..measure.live import Live  # torch is imported here, not by `import memlab`

        return Live(model, recipe, run, **known)
    from ..files.seen import seen as look
    from .explanation import explain

    if model is None:
        raise ValueError("seen without a model: what was predicted?")
    if not isinstance(seen, int):
        found = look(str(seen), known.pop("level", None))
        seen, known["level"] = found.amount, found.level
    return explain(model, recipe, run or Run(), seen=seen, **known)
