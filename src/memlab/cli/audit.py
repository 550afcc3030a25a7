"""`memlab audit FILE.md`: a list of claims, each held against what a memlab command answers.

No shell is run. A question is read by memlab's own parser and answered in this process, and only
those are asked that compute from a config: a list of claims may come from anybody.
"""

from __future__ import annotations

import argparse
import textwrap

from ..base.frozen import dataclass
from ..base.table import as_text
from ..files.claim_list import Asked, ClaimList, read_list
from . import answers
from .document import document

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from fractions import Fraction
    from typing import Any

    from ..files.figure import Number

HOLDS, SLIP, WRONG, UNCHECKED = "holds", "unit slip", "does not hold", "cannot be checked here"
WRONG_STATUS = 1  # of a claim that does not hold
ABOUT = """\
What somebody posted about memory, claim by claim, held against what memlab
answers. A claim is a heading and a short list:

  ## The weights of Llama-3.1-8B take 16 GB in 16 bits
  - figure: 16 GB
  - ask: estimate llama-3.1-8b --precision bf16
  - line: weights

figure        16 GB, 15 to 16 GB, at most 24 GB, at least 2 GiB, 8 sequences,
              yes; its digits say how near is right: 16 GB is 15.5 to 16.5 GB
ask           a command of memlab, estimate or fit, with all its flags
line          a line of what it prints (weights, total, after forward), or a
              path in its --json (rows.kv_cache, allocator.reserved)
and, where they are needed:
within        a share that is near enough: 5 %
unchecked     why no command can answer it, in place of ask and line
verdict       your name for what is wrong: missing term, contradicts itself ...
reason        your words about why; where: the address at which it stands"""
FORM = """\
# What a page says about Llama-3.1-8B

Text that is no heading and no list is for readers.

## The weights take 16 GB in 16 bits

- figure: 16 GB
- ask: estimate llama-3.1-8b --precision bf16
- line: weights
- where: the address of the page, and the day

## A conversation of 16,384 tokens takes 2 GB more

- figure: 2 GB
- ask: estimate llama-3.1-8b --precision bf16 --phase prefill --tokens 16384 --logits last
- line: rows.kv_cache

## It is served on one RTX 4090

- figure: yes
- ask: serve llama-3.1-8b --on 'RTX 4090' --max-model-len 8192
- line: starts

## A fine-tune takes 60 GB

- figure: 60 GB
- unchecked: neither the optimizer nor the batch nor the tokens are named
"""


@dataclass(frozen=True)
class Judged:
    """A claim and what became of it; `ours` is None where nothing was asked."""

    asked: Asked
    ours: Number | None
    verdict: str
    reason: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A list of claims."""
    more = "The exit status is 1 where a claim does not hold."
    parser.description, parser.epilog = f"{parser.description} {more}", ABOUT
    parser.add_argument("file", nargs="?", metavar="FILE.md", help="the list of claims")
    parser.add_argument("--form", action="store_true", help="print a short list to begin with")
    parser.add_argument("--json", action="store_true", help="print JSON for programs")


def run(options: argparse.Namespace) -> tuple[str, int]:
    """What the command prints, and its status: 1 where a claim does not hold.

    Raises      ValueError that names file, line and what would be right
    """
    if options.form:
        if options.file is not None or options.json:
            raise ValueError("--form prints a list to begin with; leave FILE.md and --json out")
        return FORM.rstrip(), 0
    if options.file is None:
        raise ValueError("say which file: memlab audit FILE.md (--form prints one to begin with)")
    found = read_list(options.file)
    judged = audited(found, options.file)
    status = WRONG_STATUS if any(one.verdict not in (HOLDS, UNCHECKED) for one in judged) else 0
    return (_as_json(found, judged) if options.json else _as_text(found, judged)), status


def audited(found: ClaimList, name: str) -> list[Judged]:
    """What became of each claim; one question is answered once.

    Raises      ValueError for a question that memlab refuses, with the claim's place
    """
    known: dict[str, answers.Answer] = {}
    judged = []
    for one in found.claims:
        try:
            if one.ask and one.ask not in known:
                known[one.ask] = answers.answer(one.ask)
            judged.append(_judged(one, known.get(one.ask)))
        except (ValueError, TypeError, OSError) as error:
            raise ValueError(f"{name}:{one.place}: {error}") from None
    return judged


def _judged(one: Asked, answer: answers.Answer | None) -> Judged:
    if answer is None:
        return Judged(one, None, UNCHECKED, one.unchecked)
    ours = answer.line(one.line)
    _same_kind(one, ours, answer)
    if one.figure.allows(ours, one.within):
        if one.verdict:
            words = f"{one.figure.words} against {one.figure.shown(ours)}"
            raise ValueError(f"the verdict is {one.verdict!r}, but the figure holds: {words}")
        return Judged(one, ours, HOLDS, "")
    other = one.figure.in_sister_unit()
    slipped = other is not None and other.allows(ours)
    why = [f"it is {other.words}"] if slipped and other else _without(one, ours, answer)
    reason = "; ".join(filter(None, [*why, one.reason]))
    return Judged(one, ours, one.verdict or (SLIP if slipped else WRONG), reason)


def _same_kind(one: Asked, ours: Number, answer: answers.Answer) -> None:
    """Bytes against bytes, counts against counts, yes against no.

    Raises      ValueError with both
    """
    kinds = ("yes or no", "bytes", "a count")
    posted = kinds[0] if one.figure.sure is not None else kinds[1 if one.figure.size else 2]
    asked = kinds[0] if isinstance(ours, bool) else kinds[1 if answer.in_bytes(one.line) else 2]
    if posted != asked:
        raise ValueError(f"{one.figure.words!r} is {posted}; the line {one.line!r} is {asked}")


def _without(one: Asked, ours: Number, answer: answers.Answer) -> list[str]:
    """The one term without which the sum would be the figure, if there is exactly one."""
    if one.line != "total" or isinstance(ours, bool):
        return []
    found = [name for name, size in answer.terms.items() if one.figure.allows(ours - size)]
    return [f"without {found[0]} it would hold"] if len(found) == 1 else []


def _as_text(found: ClaimList, judged: list[Judged]) -> str:
    rows = [["line", "verdict", "posted", "ours", "difference", "claim"]]
    for one in judged:
        figure, ours = one.asked.figure, one.ours
        cells = ["", ""] if ours is None else [figure.shown(ours), figure.difference(ours)]
        rows.append([str(one.asked.place), one.verdict, figure.words, *cells, one.asked.claim])
    counts = ", ".join(f"{verdict} {count}" for verdict, count in _counts(judged).items())
    table = as_text(rows, title=found.title)
    claims = "1 claim" if len(judged) == 1 else f"{len(judged)} claims"
    return "\n".join([table, "", *_reasons(judged), f"{claims}: {counts}"])


def _reasons(judged: list[Judged]) -> list[str]:
    """Under each claim that has one its reason, in lines that a page shows whole."""
    lines = []
    for one in judged:
        if one.reason:
            wrapped = textwrap.wrap(one.reason, 72, break_on_hyphens=False)
            lines += [f"line {one.asked.place}: {one.asked.claim}", *(f"  {x}" for x in wrapped)]
    return [*lines, ""] if lines else []


def _as_json(found: ClaimList, judged: list[Judged]) -> str:
    return document(
        "audit",
        title=found.title,
        unit="bytes",
        verdicts=_counts(judged),
        claims=[_plain(one) for one in judged],
    )


def _plain(one: Judged) -> dict[str, Any]:
    figure, ours = one.asked.figure, one.ours
    sure = figure.sure is not None
    posted = None if sure or ours is None else figure.nearest(ours)
    return {
        "line": one.asked.place,
        "claim": one.asked.claim,
        "figure": figure.words,
        "ask": one.asked.ask or None,
        "term": one.asked.line or None,
        "posted": figure.sure if sure else _number(posted),
        "low": _number(figure.low),
        "high": _number(figure.high),
        "within": _number(one.asked.within),
        "ours": ours,
        "difference": None if posted is None or ours is None else _number(figure.more(ours)),
        "verdict": one.verdict,
        "reason": one.reason,
        "where": one.asked.where or None,
    }


def _number(exact: Fraction | None) -> int | float | None:
    if exact is None:
        return None
    return int(exact) if exact == int(exact) else float(exact)


def _counts(judged: list[Judged]) -> dict[str, int]:
    """How many claims have each verdict, in the order in which they come."""
    every = [one.verdict for one in judged]
    return {verdict: every.count(verdict) for verdict in dict.fromkeys(every)}
