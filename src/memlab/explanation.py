"""From a gap between predicted and seen to the causes that can account for it, likeliest first."""

from __future__ import annotations

from .causes import CAUSES, EMPTY, GRADES, OFTEN, SELDOM, Case, Cause
from .frozen import dataclass
from .ledger import Ledger
from .model import Model
from .recipe import Recipe
from .units import BINARY, DECIMAL, parse, text, whole

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

LEVELS = ("tensors", "allocated", "reserved", "device", "process")
MOST = 3  # causes in one sum
TRIED = 8  # sums in which the allocator is replayed anew; in the others, as if it were alone
NEAR = 3  # units that a sum may leave
SHOWN = 6


@dataclass(frozen=True)
class Finding:
    """One cause, alone.

    bytes       what it adds to the predicted peak; None where only a look can tell
    pieces      how many times, for a cause that comes in pieces; 1 for the others
    """

    name: str
    bytes: int | None
    pieces: int
    likely: str
    look: str


@dataclass(frozen=True)
class Sum:
    """Causes that together come near the gap.

    bytes       what they add to the predicted peak together: less than the sum of their parts
                where they fall on different moments
    left        bytes of the gap that they leave; negative where they overshoot
    """

    names: tuple[str, ...]
    bytes: int
    left: int


@dataclass(frozen=True, repr=False)
class Explanation:
    """What was predicted, what was seen, and what may lie between.

    causes      what can account for some of the gap, likeliest first
    sums        one to three causes together, by likelihood and closeness
    ruled_out   causes that cannot: they add nothing to this peak, or more than the gap
    """

    predicted: Ledger
    seen: int
    causes: tuple[Finding, ...]
    sums: tuple[Sum, ...]
    ruled_out: tuple[Finding, ...]
    notes: tuple[str, ...]

    @property
    def gap(self) -> int:
        """Bytes seen and not predicted."""
        return self.seen - self.predicted.total()

    def __str__(self) -> str:
        total = self.predicted.total()
        lines = [f"{self.predicted.title}"]
        lines += [f"predicted {text(total)}, seen {text(self.seen)}: {_gap(self.gap)}"]
        if self.causes:
            lines += ["", "what can account for it, likeliest first"]
        for one in self.causes:
            size = "?" if one.bytes is None else text(one.bytes)
            each = f" ({one.pieces:,} times)" if one.pieces > 1 else ""
            lines += [f"{size:>10}   {one.name}{each}, {one.likely}", f"{'':13}{one.look}"]
        if self.sums:
            lines += ["", "what comes near it together"]
        for sum_ in self.sums:
            lines += [f"{text(sum_.bytes):>10}   {' + '.join(sum_.names)}, {_left(sum_.left)}"]
        if self.ruled_out:
            lines += ["", "what cannot"]
        for one in self.ruled_out:
            why = "nothing at this peak" if not one.bytes else f"{text(one.bytes)}: too much"
            lines += [f"{'':10}   {one.name}: {why}"]
        return "\n".join([*lines, *(f"\n{note}" for note in self.notes)])

    __repr__ = __str__

    def as_dict(self) -> dict[str, Any]:
        """For programs: names and whole bytes."""
        return {
            "title": self.predicted.title,
            "unit": "bytes",
            "predicted": {row.term: row.derived for row in self.predicted.rows},
            "predicted_bytes": self.predicted.total(),
            "seen_bytes": self.seen,
            "gap_bytes": self.gap,
            "causes": [_plain(one) for one in self.causes],
            "sums": [_plain(one) for one in self.sums],
            "ruled_out": [_plain(one) for one in self.ruled_out],
            "notes": list(self.notes),
        }


def explain(
    model: Model,
    recipe: Recipe | str = "fp32",
    *,
    seen: int | str,
    level: str = "device",
    batch: int = 1,
    tokens: int | None = None,
    predicted: int | str | None = None,
    **choices: Any,
) -> Explanation:
    """Which terms and which settings can account for what was seen beyond what was predicted.

    seen        bytes, or a text such as "80 GB"
    level       what was counted: "tensors" (memlab's tracker, to the byte), "allocated" (PyTorch's
                blocks), "reserved", "device" (nvidia-smi) or "process" (a process on a CPU)
    predicted   what somebody else had predicted, to be set beside memlab's own derivation
    choices     those of memlab.step.simulate, which the run was believed to have
    Unit        bytes
    Source      memlab.causes: every figure is a peak derived anew with one switch turned
    Leaves out  what no switch describes; a number can rule causes out and never prove one
    Raises      ValueError for what `simulate` does not describe, an unknown level, a size that is
                none
    """
    if level not in LEVELS:
        raise ValueError(f"level={level!r}; known: {', '.join(LEVELS)}")
    chosen = Recipe.named(recipe) if isinstance(recipe, str) else recipe
    total = parse(seen) if isinstance(seen, str) else whole("seen", seen)
    if total <= 0:
        raise ValueError(f"seen={seen!r}; a run holds more than nothing")
    setting = dict(choices)
    if tokens is not None:
        setting |= {"batch": batch, "tokens": tokens}
    elif choices.get("lora") is not None:
        raise ValueError("lora changes a training step: it needs tokens")
    else:
        setting = {}
    stored = chosen.weights if chosen.weights in ("fp32", "bf16", "fp16") else "bf16"
    case = Case(model, chosen, setting, {}, stored)
    ledger = Ledger.of("derived", case.contents(), title=_title(case))
    search = _Search(case, total - ledger.total(), total, level)
    notes = _notes(seen, total, predicted, ledger.total())
    causes, ruled_out = search.alone()
    unknown = _looks(level, search.gap)
    first = unknown if level == "process" else []  # always there, and large beside small models
    causes = [*first, *causes, *_slip(seen, search.gap + search.unit)]
    causes += [one for one in unknown if one not in first]
    return Explanation(
        ledger, total, tuple(causes), tuple(search.sums()), tuple(ruled_out), tuple(notes)
    )


class _Search:
    """The causes of one gap, each derived once."""

    def __init__(self, case: Case, gap: int, seen: int, level: str) -> None:
        self.case, self.gap = case, gap
        self.base = case.peak()
        # A sum is judged by what it leaves, in hundredths of what was seen; a tracker's figure is
        # exact, and what is left of it is worth ten times as much.
        self.unit = max(1, seen // (1000 if level == "tensors" else 100))
        self.sizes: dict[str, int] = {}
        self.known: list[Cause] = []
        cuda = case.setting.get("backend") == "cuda"
        for cause in CAUSES:
            reach = LEVELS.index("allocated" if level == "process" else level)
            if gap > 0 and LEVELS.index(cause.level) <= reach:
                if cause.level == "tensors" or cuda or "tokens" not in case.setting:
                    self._try(cause)

    def _try(self, cause: Cause) -> None:
        try:
            turned = cause.turn(self.case)
            if turned is not None:
                self.sizes[cause.name] = turned.peak() - self.base
                self.known.append(cause)
        except ValueError:
            pass  # not described for this model: nothing can be said of it

    def alone(self) -> tuple[list[Finding], list[Finding]]:
        """Those that fit into the gap, likeliest and largest first, and those that do not."""
        fits, not_ = [], []
        for cause in self.known:
            size = self.sizes[cause.name]
            pieces = self._pieces(cause, self.gap) if self._tells(cause) else 1
            found = Finding(cause.name, size * pieces, pieces, GRADES[cause.prior], cause.look)
            # One unit may be rounding.
            if 0 < size <= self.gap + self.unit:
                fits.append((cause.prior, found))
            elif size > 0 or cause.name in BLAMED:
                not_.append((cause.prior, found))
        for pair in (fits, not_):
            pair.sort(key=lambda one: (-one[0], -(one[1].bytes or 0)))
        return [found for _, found in fits], [found for _, found in not_]

    def _pieces(self, cause: Cause, gap: int) -> int:
        size = self.sizes[cause.name]
        return max(1, (gap + self.unit // 2) // size) if cause.counted and size > 0 else 1

    def sums(self) -> list[Sum]:
        """Up to three causes of different groups, joint peaks derived for the nearest ones."""
        from itertools import combinations

        usable = [c for c in self.known if self.sizes[c.name] > 0 and self._tells(c)]
        guesses = []
        for count in range(1, MOST + 1):
            for causes in combinations(usable, count):
                if len({cause.group for cause in causes}) == count:
                    joint = self._joint(causes, replays=False)
                    if joint is not None:
                        guesses.append((self._score(causes, joint), causes))
        guesses.sort(key=lambda guess: -guess[0])
        found = []
        for _, causes in guesses[:TRIED]:
            joint = self._joint(causes)
            if joint is not None and abs(joint.left) <= NEAR * self.unit:
                found.append((self._score(causes, joint), joint))
        found.sort(key=lambda pair: -pair[0])
        shown: list[Sum] = []
        for _, joint in found:
            if not any(self._idle(joint, other) for other in shown):
                shown.append(joint)
        return shown[:SHOWN]

    def _idle(self, joint: Sum, other: Sum) -> bool:
        """Whether a sum is one that is shown already and a cause that adds next to nothing."""
        adds = abs(joint.bytes - other.bytes)
        return set(other.names) <= set(joint.names) and adds < self.unit and joint.left != 0

    def _tells(self, cause: Cause) -> bool:
        """Whether meeting the gap with it means anything: small pieces add up to every number."""
        return not cause.counted or self.sizes[cause.name] > 2 * self.unit

    def _score(self, causes: tuple[Cause, ...], joint: Sum) -> float:
        """How likely: the logarithm of the priors, less what is left in units."""
        from math import log

        return sum(log(cause.prior) for cause in causes) - abs(joint.left) / self.unit

    def _joint(self, causes: tuple[Cause, ...], replays: bool = True) -> Sum | None:
        """What causes add together; a replay takes long, so its bytes may be those found alone."""
        case: Case | None = self.case
        counted, size = None, 0
        for cause in causes:
            if cause.counted:
                counted = cause
            elif cause.level == "reserved" and not replays:
                size += self.sizes[cause.name]
            elif case is not None:
                case = cause.turn(case)
        if case is None:
            return None
        try:
            size += case.peak() - self.base
            names = tuple(c.name for c in causes if c is not counted)
            if counted is not None:
                piece = counted.turn(case)
                each = (piece.peak() if piece else 0) - case.peak()
                if each <= 0:
                    return None
                pieces = max(1, (self.gap - size + each // 2) // each)
                size += pieces * each
                names += (f"{pieces:,} × {counted.name}",)
        except ValueError:
            return None
        return Sum(names, size, self.gap - size)


# Told even where they add nothing, for people blame them.
BLAMED = (
    "no checkpointing",
    "eager attention",
    "losses kept with their graphs",
    "old and new copies while loading",
    "AdamW's foreach temporaries",
)


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
    if "tokens" not in case.setting:
        return title + ": what stays between two steps"
    return title + f" · {case.setting['batch']} x {case.setting['tokens']} tokens: the peak"


def _gap(gap: int) -> str:
    if gap > 0:
        return f"{text(gap)} are missing"
    if gap == 0:
        return "nothing is missing, +0 B"
    return f"{text(-gap)} less than predicted; was the peak between two looks?"


def _left(left: int) -> str:
    if left == 0:
        return "nothing left"
    return f"{text(left)} left" if left > 0 else f"{text(-left)} too much"


def _plain(found: Any) -> dict[str, Any]:
    return {name: getattr(found, name) for name in found.__fields__}
