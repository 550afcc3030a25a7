"""What field notes claim about memory, each claim with its verdict and the check behind it.

The claims stand in the package, in data/claims/<note>.json, one object each. Most have a check, a
function in the tests (tests/audit), which computes the figure anew: a test fails when a stored
verdict or value is not its own, or when nothing could turn its verdict. What could only compare one
copied fact with another has a source instead, and what has neither says why.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ..base.frozen import dataclass
from ..base.table import as_text
from .claims_html import as_html
from .data import data_files

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

    from ..base.grid import Grid

VERDICTS = {
    "holds": "the figure follows from the settings that are given",
    "arithmetic slip": "the formula is right, the arithmetic is wrong",
    "unit slip": "GB for GiB, bits for bytes, thousands for millions",
    "wrong model": "the formula does not describe what the program does",
    "missing term": "what is counted is right, but something that is in memory was left out",
    "contradicts itself": "the same text says otherwise",
    "wrong about an API": "the library has no such thing, or it does something else",
    "cannot be checked here": "checking it would need a GPU, a data set or a more precise claim",
}
KINDS = {
    "check": "judged by a check",
    "source": "judged by a source",
    "neither": "neither check nor source",
}
FOLDER = Path(__file__).parent.parent / "data" / "claims"
_NEEDED = ("id", "claim", "figures", "check", "result", "verdict", "right_figure")
_MORE = ("reason", "new", "source", "link", "quote", "line", "also", "money")


@dataclass(frozen=True)
class Claim:
    """One statement of a note, in our words.

    figures         the note's own, as it prints them; may be empty
    check           the function that computes it anew, or None with a source or a reason
    result          what the check found, as text
    right_figure    what belongs there, or None where the claim holds
    reason          what a reader has to know beside the verdict; or why there is no check
    source          where it was read: a fact of a program or of the note itself, compared by eye
    link            the address of that, in the version that was read
    new             not on the list we began with: found while auditing
    quote, line     the note's own words, in its language and without markup, and where they stand;
                    of what is implied or left out, the words that imply it or leave it out
    also            where the note says it again, as {id: line}; one verdict is enough for all
    money           for the figure that a note is about: {"predicted": "28 GB", "right": "30 GB"}
    """

    id: str
    claim: str
    figures: str
    check: str | None
    result: str
    verdict: str
    right_figure: str | None
    reason: str = ""
    new: bool = False
    source: str = ""
    link: str = ""
    quote: str = ""
    line: int = 0
    also: Mapping[str, int] | None = None
    money: Mapping[str, str] | None = None


def read(source: str | Path | list[Mapping[str, Any]]) -> list[Claim]:
    """The claims of a note: by its name ("004"), from a file, or from the list in it.

    Raises      ValueError for an unknown note, and for an object that is not a whole claim, by its
                id; FileNotFoundError where an installation lacks the claims
    """
    found = source if isinstance(source, list) else _load(source)
    claims = [_claim(fields, i) for i, fields in enumerate(found)]
    ids = [name for claim in claims for name in (claim.id, *(claim.also or ()))]
    if twice := sorted({name for name in ids if ids.count(name) > 1}):
        raise ValueError(f"claims with one id: {', '.join(twice)}")
    return claims


def notes() -> list[str]:
    """The names of the notes that have claims, in order.

    Raises      FileNotFoundError where an installation lacks them
    """
    return [path.stem for path in data_files(FOLDER)]


class Claims:
    """Claims as a table that prints itself; `verdict` picks those with one verdict."""

    def __init__(self, claims: list[Claim], verdict: str | None = None) -> None:
        if verdict is not None and verdict not in VERDICTS:
            raise ValueError(f"unknown verdict {verdict!r}; known: {', '.join(VERDICTS)}")
        self.claims = [c for c in claims if verdict in (None, c.verdict)]

    def counts(self) -> dict[str, int]:
        """How many claims have each verdict, those without any left out."""
        all_of_them = [claim.verdict for claim in self.claims]
        return {v: all_of_them.count(v) for v in VERDICTS if v in all_of_them}

    def kinds(self) -> dict[str, int]:
        """How many claims are judged by a check, by a source, by neither."""
        by = [kind(claim) for claim in self.claims]
        return {name: by.count(name) for name in KINDS if name in by}

    def summary(self) -> Grid:
        """How many claims of the note and of ours met which fate, and by what they were judged."""
        from ..base.grid import Grid  # when asked for: the command line never does

        sides = self.of_the_note(), self.added()
        rows = [["verdict", "of the note", "added while auditing"]]
        rows += [[v, *(f"{side.counts().get(v, 0)}" for side in sides)] for v in self.counts()]
        foot = [["in all", *(f"{len(side.claims)}" for side in sides)]]
        foot += [
            [KINDS[name], *(f"{side.kinds().get(name, 0)}" for side in sides)]
            for name in self.kinds()
        ]
        return Grid(rows + foot, foot=len(foot))

    def of_the_note(self) -> Claims:
        """Those that the note makes."""
        return Claims([claim for claim in self.claims if not claim.new])

    def added(self) -> Claims:
        """Those that nobody made: what a note implies or leaves out, found while auditing."""
        return Claims([claim for claim in self.claims if claim.new])

    def table(self) -> list[list[str]]:
        head = ["id", "claim", "verdict", "right"]
        return [head] + [[c.id, c.claim, c.verdict, c.right_figure or ""] for c in self.claims]

    def __str__(self) -> str:
        return as_text(self.table())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Folded by verdict, with what was found, and by which check or source."""
        return as_html(self)


def kind(claim: Claim) -> str:
    """By what a claim is judged: one of KINDS."""
    return "check" if claim.check else "source" if claim.source else "neither"


def _load(source: str | Path) -> list[Mapping[str, Any]]:
    from ..base.untrusted import read_json

    path = Path(source)
    if path.suffix != ".json":
        path = FOLDER / f"{source}.json"
        if str(source) not in (known := notes()):
            raise ValueError(f"unknown note {str(source)!r}; known: {', '.join(known)}")
    found = read_json(path)
    if not isinstance(found, list):
        raise ValueError(f"{path.name} holds a {type(found).__name__}; a list of claims is needed")
    return found


def _claim(fields: Mapping[str, Any], place: int) -> Claim:
    name = fields.get("id", f"number {place + 1}")
    if missing := [key for key in _NEEDED if key not in fields]:
        raise ValueError(f"claim {name} has no {', '.join(missing)}")
    if more := sorted(set(fields) - {*_NEEDED, *_MORE}):
        raise ValueError(f"claim {name} has {', '.join(more)}, which no claim has")
    if fields["verdict"] not in VERDICTS:
        known = ", ".join(VERDICTS)
        raise ValueError(f"claim {name}: unknown verdict {fields['verdict']!r}; known: {known}")
    if not fields["check"] and not fields.get("reason") and not fields.get("source"):
        raise ValueError(f"claim {name} has neither a check nor a source nor a reason")
    if bool(fields.get("source")) != fields.get("link", "").startswith("https://"):
        raise ValueError(f"claim {name}: a source needs a link, an https address, and a link one")
    return Claim(**fields)
