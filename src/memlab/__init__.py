"""memlab: where every byte of memory goes when a language model is trained or served.

Importing memlab imports no torch, numpy or matplotlib; `memlab.measure` and `memlab.lab` do.
"""

from .estimate import estimate as estimate
from .formats import bytes_per_value as bytes_per_value
from .formats import format_of as format_of
from .formats import storage as storage
from .ledger import Ledger as Ledger
from .ledger import Row as Row
from .model import Model as Model
from .model import presets as presets
from .recipe import Recipe as Recipe
from .recipe import recipes as recipes
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


def check(name: str, answer: object) -> None:
    """Print ○ for `...`, ✓ for the right answer of an exercise, ✗ and a hint for a wrong one.

    Raises      ValueError for an unknown id, with the closest known ones
    """
    from .exercises import check  # when a notebook asks: the command line never does

    check(name, answer)


def explain(model=None, recipe="fp32", *, seen=None, **known):  # type: ignore[no-untyped-def]
    """What can account for the bytes between a prediction and what was seen.

    With `seen`     an `Explanation`: memlab.explanation.explain says all about it. A size, the file
                    of a timeline or of a memory snapshot
    Without         a context manager that watches a run and knows: memlab.measure.live.Live
    Example         with explain(model, "bf16", batch=8, tokens=64) as live: train()
    """
    if seen is None:
        from .measure.live import Live  # torch is imported here, not by `import memlab`

        return Live(model, recipe, **known)
    from .explanation import explain
    from .seen import seen as look

    if not isinstance(seen, int):
        found = look(str(seen), known.pop("level", None))
        seen, known["level"] = found.amount, found.level
    return explain(model, recipe, seen=seen, **known)


def trace(model, inputs, **options):  # type: ignore[no-untyped-def]
    """Run a training step on tensors without values; `memlab.measure.trace` says all about it.

    Example     trace(model, {"input_ids": ids, "labels": ids}).fits("RTX 4090")
    Raises      ModuleNotFoundError without torch; what `memlab.measure.trace` raises
    """
    from .measure import trace  # torch is imported here, not by `import memlab`

    return trace(model, inputs, **options)


__version__ = "0.1.0"
