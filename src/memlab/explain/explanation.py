"""From a gap between predicted and seen to the causes that can account for it, likeliest first."""

from __future__ import annotations

from ..estimate import estimate, told
from ..ledger import Ledger
from ..model import Model
from ..recipe import Recipe
from ..recipe.chosen import recipe_for, tied_as
from ..run import Run
from ..step.loop import stored_as
from ..units import BINARY, DECIMAL, parse, text, whole
from .case import Case
from .causes import EMPTY, GRADES, OFTEN, SELDOM
from .findings import Explanation as Explanation
from .findings import Finding
from .search import LEVELS as LEVELS
from .search import Search
from .watched import Watched


def explain(
    model: Model,
    recipe: Recipe | str | None,
    run: Run,
    *,
    seen: int | str,
    level: str = "device",
    predicted: int | str | None = None,
    watched: Watched | None = None,
) -> Explanation:
    """Which terms and which settings can account for what was seen beyond what was predicted.

    run         how the step was believed to be executed; without tokens, what stays between steps
    seen        bytes, or a text such as "80 GB"
    level       what was counted: "tensors" (memlab's tracker, to the byte), "allocated" (PyTorch's
                blocks), "reserved", "device" (nvidia-smi) or "process" (a process on a CPU)
    watched     what a tracker knows of the peak beside its bytes
    predicted   what somebody else had predicted, to be set beside memlab's own derivation
    Unit        bytes
    Source      memlab.explain.causes: every figure is a peak derived anew with one switch turned
    Leaves out  what no switch describes; a number can rule causes out and never prove one
    Raises      ValueError for what is not described, an unknown level, a size that is none
    """
    if level not in LEVELS:
        raise ValueError(f"level={level!r}; known: {', '.join(LEVELS)}")
    total = parse(seen) if isinstance(seen, str) else whole("seen", seen)
    if total <= 0:
        raise ValueError(f"seen={seen!r}; a run holds more than nothing")
    chosen = recipe_for(model, recipe)
    if run.tokens is None:  # refuses what would change a step
        estimate(model, chosen, run)
    case = Case(tied_as(model, chosen), chosen, run, stored=stored_as(chosen))
    ledger = Ledger.of("derived", case.contents(), title=_title(case))
    search = Search(case, total - ledger.total(), total, level, watched)
    notes = _notes(seen, total, predicted, ledger.total())
    sums = search.sums()
    causes, ruled_out = search.alone()
    together = {name.rpartition(" × ")[2] for one in sums for name in one.names}
    ruled_out = [one for one in ruled_out if one.name not in together]
    unknown = _looks(level, search.gap)
    first = unknown if level == "process" else []  # always there, and large beside small models
    causes = [*first, *causes, *_slip(seen, search.gap + search.unit)]
    causes += [one for one in unknown if one not in first]
    return Explanation(ledger, total, tuple(causes), tuple(sums), tuple(ruled_out), tuple(notes))


def _looks(level: str, gap: int) -> list[Finding]:
    """What has no formula: only a look can tell."""
    if gap <= 0 or level not in ("device", "process"):
        return []
    if level == "process":
        return [Finding("Python, PyTorch and their libraries", None, 1, GRADES[OFTEN], EMPTY)]
    return [Finding("another process on the card", None, 1, GRADES[SELDOM], "nvidia-smi")]


def _slip(seen: int | str, gap: int) -> list[Finding]:
    """A figure in GiB that was one in GB, a name that 7.4 % of memory hide behind."""
    if not isinstance(seen, str):
        return []
    name = seen.strip().lstrip("+-0123456789., ")
    if name not in BINARY or name == "B":
        return []
    small = parse(seen) * DECIMAL[name.replace("i", "").replace("KB", "kB")] // BINARY[name]
    bytes = parse(seen) - small
    if bytes > gap:
        return []  # a gap, and room for rounding
    look = "read the same figure in bytes"
    return [Finding(f"{name} where {name.replace('i', '')} was meant", bytes, 1, "seldom", look)]


def _notes(seen: int | str, total: int, predicted: int | str | None, own: int) -> list[str]:
    notes = []
    if predicted is not None:
        told = parse(predicted) if isinstance(predicted, str) else whole("predicted", predicted)
        more, less = text(abs(own - told)), "more" if own >= told else "less"
        notes.append(
            f"The prediction was {text(told)}. memlab derives {more} {less} from the same "
            "settings: that part of the difference is in the prediction, not in the run."
        )
    if isinstance(seen, str):
        name = seen.strip().lstrip("+-0123456789., ")
        binary = {"GB": "GiB", "MB": "MiB", "TB": "TiB"}.get(name)
        if binary:
            wide = total * BINARY[binary] // DECIMAL[name]
            notes.append(
                f"nvidia-smi and torch count in powers of two: if {name} stood for {binary}, "
                f"{text(wide - total)} more were seen."
            )
    return notes


def _title(case: Case) -> str:
    title = f"{case.model.name} · {case.recipe.name}"
    if case.run.tokens is None:
        return title + ": what stays between two steps"
    return title + f" · {told(case.run)}: the peak"
