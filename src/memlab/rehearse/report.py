"""A rehearsal as a person reads it, and as a program does."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any

from ..base.message import Listed, Message
from ..base.messages import say
from ..base.table import as_text, cell
from ..measure.line_tracker import Line
from ..terms.context import CONTEXT
from ..units import text
from ..verdict import workspaces

if TYPE_CHECKING:
    from .answer import Rehearsal

OF_RANK, OF_CARD = "peak of rank {number} of {several}", "peak of card {number} of {several}"
LOADED = (
    "{count} batches were loaded, of {least} to {most}; --longest takes the longest one each time"
)
LONGEST = "every batch was of the longest examples: {shape}"
TOP = 10  # lines
WIDE = 44  # letters of a line of code
CARD = "no card was named, so torch found {card}; --on says another, and whether it fits"
STOPS = "On {card} it stops in step {step}, {phase}, at {line}"
ENDED = "The program itself ended with status {status}; until then its peak was {size}"
SEEN = "{count} optimizer steps were run, to the peak of step {step}, in {phase}"
NO_STEP = "no optimizer step was run: the peak of the whole program, in {phase}"
ABSENT = "not installed here, and looked for by {who}: {package}; where it is, they go another way"
REST = {
    "after_forward": "after forward",
    "after_backward": "after backward",
    "between_steps": "between steps, at least",
}
MISSED = "what kernels and cuDNN need inside, and other processes"


def as_lines(found: Rehearsal) -> list[str]:
    """All of it, line by line."""
    if found.status:
        ended = Message(ENDED, status=found.status, size=text(found.peak))
        return [*([found.failure] if found.failure else []), say(ended)]
    lines = []
    if found.verdict is not None:
        lines.append(say(found.verdict.told()))
    elif found.backend == "cuda":
        lines.append(say(Message(CARD, card=found.card.name)))
    steps = len(found.steps)
    said: dict[str, Any] = {"count": steps, "step": found.step, "phase": found.phase or "start"}
    lines += [say(Message(SEEN if steps else NO_STEP, **said)), "", as_text(_figures(found)), ""]
    head = ["at the peak", "bytes", "size"]
    rows = [[name, cell(size), text(size)] for name, size in found.contents().items()]
    lines += [as_text([head, *rows, ["total", cell(found.peak), text(found.peak)]], foot=1), ""]
    lines += [as_text(_holders(found)), ""]
    stopped = found.out_of_memory
    if stopped is not None:
        where = {"step": stopped.step, "phase": stopped.phase, "line": _at(stopped.reader)}
        lines += [say(Message(STOPS, card=found.card.name, **where)), _beside(stopped)]
        lines += [stopped.message, ""]
    if found.remedied:
        lines += [as_text(_remedies(found)), ""]
    return lines + _honesty(found)


def _figures(found: Rehearsal) -> list[list[str]]:
    rows: list[tuple[str, int | None]] = [("peak of the first step", found.first)]
    rows.append(("peak of later steps", found.later))
    rows += [(REST[name], size) for name, size in found.held.items()]
    if found.others or found.ranks > 1:
        several = max(found.ranks, found.asked.program.cards)
        pattern = OF_RANK if found.ranks > 1 else OF_CARD
        for each in sorted([*found.others, found], key=lambda each: each.place):
            rows.append((Message(pattern, number=each.place, several=several), each.peak))
    if found.backend == "cuda":
        rows += [
            ("in blocks of the allocator", found.replay.peak_allocated),
            ("reserved where nothing limits it", found.replay.peak_reserved),
            ("CUDA context", CONTEXT),
            ("cuBLAS workspaces", workspaces(found.card, found.threads)),
            ("NCCL, at most", found.room.nccl or None),
            ("tensors on the host, at most", found.host),
        ]
    made = [[name, cell(size), text(size)] for name, size in rows if size is not None]
    return [["moment", "bytes", "size"], *made]


def _holders(found: Rehearsal) -> list[list[str]]:
    head = ["bytes", "tensors", "of", "line of the program", "line of the library"]
    rows = []
    for each in found.holders()[:TOP]:
        library = "" if each.library == each.reader else each.library.where
        rows.append([cell(each.bytes), cell(each.tensors), each.term, _at(each.reader), library])
    return [head, *rows]


def _remedies(found: Rehearsal) -> list[list[str]]:
    """Each change alone, with the program rehearsed again."""
    rows = []
    for words, other, why in found.remedied or ():
        if other is None or other.verdict is None:
            rows.append([words, "", "", why])
        else:
            rows.append([words, cell(other.peak), text(other.peak), say(other.verdict.word)])
    return [["rehearsed with one change", "bytes", "size", "verdict"], *rows]


def _at(line: Line) -> str:
    code = line.code if len(line.code) <= WIDE else f"{line.code[: WIDE - 1]}…"
    return f"{line.where} {code}".strip()


def _beside(stopped: Any) -> str:
    return f"  {_at(stopped.library)}" if stopped.library != stopped.reader else ""


def _honesty(found: Rehearsal) -> list[str]:
    """What was assumed, what was not run, what was missing, and which versions it holds for."""
    lines = found.noted.told()
    lines += [f"not run {count} × {say(what)}" for what, count in found.skipped.most_common()]
    lines += _loaded(found)
    for package, who in found.missing.items():
        lines.append(say(Message(ABSENT, package=package, who=Listed(", ", who))))
    versions = Listed(", ", [f"{name} {version}" for name, version in found.versions.items()])
    lines.append(say(Message("holds for {versions}", versions=versions)))
    lines.append(say(Message("leaves out {what}", what=MISSED)))
    return lines


def _loaded(found: Rehearsal) -> list[str]:
    """Shapes of the batches, where they were not all alike."""
    shapes = sorted(found.loads.batches, key=lambda shape: (math.prod(shape), shape))
    if found.asked.longest:
        return [say(Message(LONGEST, shape=_by(shapes[-1])))] if shapes else []
    if len(shapes) < 2:
        return []
    said = {"count": found.loads.batches.total(), "least": _by(shapes[0]), "most": _by(shapes[-1])}
    return [say(Message(LOADED, **said))]


def _by(shape: tuple[int, ...]) -> str:
    return " × ".join(f"{size:,}" for size in shape)


def as_dict(found: Rehearsal) -> dict[str, Any]:
    """All of it as plain numbers and words."""
    on_card = found.backend == "cuda"
    stopped = found.out_of_memory
    beside = {"context": CONTEXT, "cublas": workspaces(found.card, found.threads)}
    beside["nccl"] = found.room.nccl
    return {
        "unit": "bytes",
        "peak": {
            "bytes": found.peak,
            "step": found.step,
            "phase": found.phase,
            "contents": found.contents(),
        },
        "steps": found.steps,
        "held": found.held,
        "allocator": {
            "allocated": found.replay.peak_allocated,
            "reserved": found.replay.peak_reserved,
        }
        if on_card
        else None,
        "beside": beside if on_card else None,
        "host": found.host if on_card else None,
        "lines": [
            {
                "bytes": each.bytes,
                "tensors": each.tensors,
                "term": each.term,
                "line": each.reader._asdict(),
                "library": each.library._asdict(),
            }
            for each in found.holders()[:TOP]
        ],
        "device": found.card.name if found.named else None,
        "backend": found.backend,
        "ranks": found.ranks,
        "cards": found.asked.program.cards,
        "rank": found.place,
        "other_ranks": {each.place: each.peak for each in found.others},
        "fits": None if found.verdict is None else found.verdict.fits,
        "verdict": None if found.verdict is None else found.verdict.word,
        "out_of_memory": None
        if stopped is None
        else {
            "message": str(stopped.message),
            "step": stopped.step,
            "phase": stopped.phase,
            "line": stopped.reader._asdict(),
            "library": stopped.library._asdict(),
        },
        "remedies": [
            {
                "change": str(words),
                "bytes": None if other is None else other.peak,
                "verdict": other.verdict.word if other and other.verdict else None,
                "why_not": why or None,
            }
            for words, other, why in found.remedied or ()
        ],
        "batches": [
            {"shape": list(shape), "times": times} for shape, times in found.loads.batches.items()
        ],
        "assumed": [
            {"what": str(what), "line": where, "times": count}
            for (what, where), count in found.assumed.most_common()
        ],
        "not_run": [
            {"what": str(what), "times": count} for what, count in found.skipped.most_common()
        ],
        "missing": found.missing,
        "versions": found.versions,
        "platform": sys.platform,
        "leaves_out": [MISSED],
    }
