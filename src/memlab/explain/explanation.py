"""From a gap, seen minus predicted, to its causes: first what closes it, then the most likely."""

from __future__ import annotations

from ..base import titles
from ..base.frozen import replace
from ..base.gc_paused import no_garbage
from ..base.message import Message
from ..estimate import estimate, told
from ..ledger import Ledger
from ..model import Model
from ..recipe import Recipe
from ..run import Run
from ..run.argument_types import check_types
from ..run.recipe_choice import recipe_for, tied_as
from ..step.loops.loop import forget, stored_as
from ..terms.context import READINGS
from ..terms.workspaces import cublas_workspaces
from ..units import BINARY, DECIMAL, parse, text, whole
from . import findings
from .case import Case
from .causes import EMPTY, GRADES, OFTEN, SELDOM, SOMETIMES
from .findings import Explanation as Explanation
from .findings import Finding
from .search import LEVELS as LEVELS
from .search import Search
from .watched import Watched

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Collection

MIB = 2**20


def explain(
    model: Model,
    recipe: Recipe | str | None,
    run: Run,
    *,
    seen: int | str,
    level: str = "device",
    predicted: int | str | None = None,
    watched: Watched | None = None,
    at_least: bool = False,
    rounded_to: int | None = None,
    settled: Collection[str] = (),
) -> Explanation:
    """Which terms and which settings can account for what was seen beyond what was predicted.

    Or below it: where less was seen, for settings that are cheaper than those that were told, and
    for moments that a counter may have read in place of the peak.

    run         how the step was believed to be executed; without tokens, what stays between steps
    seen        bytes, or a text such as "80 GB"
    level       what was counted: "tensors" (memlab's tracker, to the byte), "allocated" (PyTorch's
                blocks), "reserved", "device" (nvidia-smi) or "process" (a process on a CPU)
    watched     what a tracker knows of the peak beside its bytes
    predicted   what somebody else had predicted, to be set beside memlab's own derivation
    at_least    whether the run was to hold more than was seen: it ended out of memory. Nothing is
                missing then where more was predicted, and no cause adds too much
    rounded_to  bytes to which the figure is known; None: as it was given
    settled     names of causes that what was said rules out: none of them is tried
    Unit        bytes
    Source      memlab.explain.causes: every figure is a peak derived anew with one switch
                turned
    Leaves out  what no switch describes; a number can rule causes out and never prove one
    Raises      ValueError for what is not described, an unknown level, a size that is none
    """
    check_types(model, run)
    if level not in LEVELS:
        raise ValueError(f"level={level!r}; known: {', '.join(LEVELS)}")
    total = parse(seen) if isinstance(seen, str) else whole("seen", seen)
    if total <= 0:
        raise ValueError(f"seen={seen!r}; a run holds more than nothing")
    case = _case(model, recipe, run)
    known_to = rounding(seen, level) if rounded_to is None else rounded_to
    # A search simulates many steps, and where torch is loaded Python looks through all of it again
    # and again for garbage, of which a simulation leaves next to none. Steps that are kept would
    # be looked through as soon as it may.
    with no_garbage(collect=False):
        ledger = Ledger.of("derived", case.contents(), title=_title(case))
        gap = total - ledger.total()
        gap = max(0, gap) if at_least else gap
        search = Search(case, gap, total, level, watched, known_to, at_least, settled)
        sums = [] if at_least else search.sums()
        causes, ruled_out = search.alone()
        forget()
    notes = _notes(seen, total, predicted, ledger.total())
    together = {findings.cause_of(name) for one in sums for name in one.names}
    ruled_out = [one for one in ruled_out if one.name not in together]
    unknown = _looks(level, search.gap, run)
    first = unknown if level == "process" else []  # always there, and large beside small models
    causes = [*first, *causes, *_slip(seen, search.gap + search.unit)]
    causes += [one for one in unknown if one not in first]
    found = Explanation(ledger, total, tuple(causes), tuple(sums), tuple(ruled_out), tuple(notes))
    equal = () if at_least else search.equal
    return replace(found, equal=equal, rounding=known_to, at_least=at_least)


def predicted(model: Model, recipe: Recipe | str | None, run: Run) -> Ledger:
    """What an explanation begins with: the terms of the peak, or of what stays without tokens.

    Raises      as `explain`
    """
    check_types(model, run)
    case = _case(model, recipe, run)
    return Ledger.of("derived", case.contents(), title=_title(case))


def _case(model: Model, recipe: Recipe | str | None, run: Run) -> Case:
    chosen = recipe_for(model, recipe, run)
    if run.tokens is None:  # refuses what would change a step
        estimate(model, chosen, run)
    return Case(tied_as(model, chosen), chosen, run, stored=stored_as(chosen))


def rounding(seen: int | str, level: str) -> int:
    """To how many bytes a figure is known, by how it was given and what was counted.

    A tracker counts every byte. Of a text the last digit tells; a whole number of MiB is what
    nvidia-smi prints; any other number of bytes is taken for what it says.

    Unit        bytes
    """
    if level == "tensors":
        return 0
    if isinstance(seen, str):
        words = seen.strip()
        unit = words.lstrip("+-0123456789., ")
        digits = len(words[: len(words) - len(unit)].strip().partition(".")[2])
        return max(1, parse(f"1 {unit or 'B'}") // 10**digits)
    return MIB if seen % MIB == 0 else 1


def _looks(level: str, gap: int, run: Run) -> list[Finding]:
    """What has no formula, or lies outside every line of the program: only a look can tell."""
    if gap < 0 and level in POLLED:
        return [Finding(BETWEEN, None, 1, GRADES[SOMETIMES], FASTER)]
    if gap <= 0 or level == "tensors":
        return []
    if level == "process":
        return [Finding("Python, PyTorch and their libraries", None, 1, GRADES[OFTEN], EMPTY)]
    reach, found = LEVELS.index(level), []
    for at, name, likely, size, look in OUTSIDE if run.backend == "cuda" else OUTSIDE[-1:]:
        if LEVELS.index(at) <= reach and (size or 0) <= gap:
            found.append(Finding(name, size, 1, GRADES[likely], look))
    return found


# Counts that are read now and then: a peak that is over when it is read is in no figure.
POLLED = ("device", "process")
BETWEEN = "the peak was between two looks"
FASTER = "look more often (memlab watch --every), or read max_memory_reserved() in the program"
# What no line of a training script allocates: the count that shows it, and where to look. A
# workspace is that of the largest cards, for a forward and a backward thread.
OUTSIDE = (
    (
        "allocated",
        "workspaces of cuBLAS",
        SOMETIMES,
        cublas_workspaces(9),
        "CUBLAS_WORKSPACE_CONFIG=:16:8 makes them small: does the gap change?",
    ),
    (
        "reserved",
        "the private pool of a CUDA graph",
        SELDOM,
        None,
        "segments of torch.cuda.memory_snapshot() whose segment_pool_id is not (0, 0)",
    ),
    (
        "device",
        "buffers of NCCL, with several GPUs",
        SELDOM,
        None,
        "NCCL_BUFFSIZE and NCCL_MAX_NCHANNELS: does the gap change?",
    ),
    (
        "device",
        "a second CUDA context",
        SELDOM,
        READINGS[0].context,
        "nvidia-smi: more than one process of yours? a loader's worker that touches CUDA has one",
    ),
    ("device", "another process on the card", SELDOM, None, "nvidia-smi"),
)


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
    notes: list[str] = []
    if predicted is not None:
        told = parse(predicted) if isinstance(predicted, str) else whole("predicted", predicted)
        kind = findings.TOLD_MORE if own >= told else findings.TOLD_LESS
        notes.append(Message(kind, text(told), text(abs(own - told))))
    if isinstance(seen, str):
        name = seen.strip().lstrip("+-0123456789., ")
        binary = {"GB": "GiB", "MB": "MiB", "TB": "TiB"}.get(name)
        if binary:
            wide = total * BINARY[binary] // DECIMAL[name]
            notes.append(Message(findings.POWERS, name, binary, text(wide - total)))
    return notes


def _title(case: Case) -> str:
    named = [case.model.name, case.recipe.name]
    if case.run.tokens is None:
        return Message(titles.BETWEEN, what=titles.dotted(*named))
    return Message(titles.AT_PEAK, what=titles.dotted(*named, told(case.run)))
