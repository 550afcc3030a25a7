"""`memlab estimate --posted SIZE`: how far a figure that somebody read is, or that it cannot be."""

from __future__ import annotations

from ..ledger import Ledger
from ..model import Model
from ..recipe import Recipe
from ..run import Run
from ..run.lower_bound import least
from ..units import parse, text

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any


def compared(posted: str, model: Model, recipe: Recipe, how: Run, ledger: Ledger) -> dict[str, Any]:
    """A posted peak beside the derived one and beside the least that it can be.

    least       what the run's weights, gradients and states take together
    possible    whether the posted figure is not below that
    error       (derived - posted) / posted
    Unit        bytes
    Raises      ValueError for a size that is none
    """
    size = parse(posted)
    if size <= 0:
        raise ValueError(f"--posted {posted!r}: a size above 0 is needed")
    lowest = sum(least(model, recipe, how).values())
    error = (ledger.total() - size) / size
    return {"bytes": size, "least": lowest, "possible": size >= lowest, "error": error}


def line(found: dict[str, Any], how: Run) -> str:
    """The same in a sentence."""
    size = text(found["bytes"])
    if not found["possible"]:
        what = "weights, gradients and optimizer states" if how.phase == "train" else "weights"
        lowest = text(found["least"])
        return f"posted {size}: it cannot be, for the {what} of this run alone take {lowest}"
    return f"posted {size}: memlab is {found['error']:+.2%} from it"
