"""The names that people import from memlab itself.

A module of its own, so that the command line, which imports its own few, does not pay for all.
"""

from __future__ import annotations

from .estimate import estimate as estimate
from .explain import explain as _explain_figure
from .formats import bytes_per_value as bytes_per_value
from .formats import format_of as format_of
from .formats import storage as storage
from .ledger import Ledger as Ledger
from .ledger import Row as Row
from .model import Model as Model
from .model import presets as presets
from .recipe import Recipe as Recipe
from .recipe import recipes as recipes
from .rehearse import rehearse as rehearse
from .run import Run as Run
from .sharding import Sharding as Sharding
from .units import GB as GB
from .units import MB as MB
from .units import GiB as GiB
from .units import KiB as KiB
from .units import MiB as MiB
from .units import TiB as TiB
from .units import exact as exact
from .units import parse as parse
from .units import text as text

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any


def check(name: str, answer: object) -> None:
    """Print ○ for `...`, ✓ for the right answer of an exercise, ✗ and a hint for a wrong one.

    Raises      ValueError for an unknown id, with the closest known ones
    """
    from .exercises import check  # when a notebook asks: the command line never does

    check(name, answer)


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
    if seen is not None:
        return _explain_figure(model, recipe, run, seen=seen, **known)
    from .measure.live import Live  # torch is imported here, not by `import memlab`

    return Live(model, recipe, run, **known)


def trace(model: Any, inputs: Any, run: Run | None = None, **options: Any) -> Any:
    """Run a training step on tensors without values.

    A module        trace(module, {"input_ids": ids, "labels": ids}).fits("RTX 4090"):
                    memlab.measure.trace says all about it
    A Model         trace(Model.preset("llama-3-8b"), "bf16", Run(tokens=4096)), with a recipe in
                    the place of the inputs: the question of `estimate`, asked of the real code
    A config        trace("config.json", "bf16", Run(tokens=4096)), a path or a dict: any causal
                    language model of the installed transformers, with its own code
    Raises          ModuleNotFoundError without torch; what memlab.measure.trace raises
    """
    how = Run() if run is None else run
    from os import PathLike

    from .lab.causal import Causal, read  # torch is imported here, not by `import memlab`
    from .lab.trace_run import trace_run
    from .measure import trace

    asked = read(model) if isinstance(model, str | dict | PathLike) else model
    if isinstance(asked, Model | Causal):
        return trace_run(asked, inputs, how, **options)
    return trace(asked, inputs, how, **options)
