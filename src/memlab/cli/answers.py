"""One memlab command, asked in this process: its answer line by line, as numbers."""

from __future__ import annotations

import contextlib
import io
import json
import shlex

from ..base.frozen import dataclass
from .asked import answered

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

    from ..files.figure import Number

# What computes from a config and leaves nothing behind; the others run code, or write a file.
ASKED = ("estimate", "fit", "serve")
REFUSED = ("plot", "against", "posted")
# Not answers: what the command repeats of its question.
REPEATED = ("run", "engine", "config", "recipe", "sharding", "schema", "proven")
# Lines that are no bytes.
COUNTS = {"blocks", "block_tokens", "concurrency", "groups", "longest", "parameters"}
COUNTS |= {"request_blocks", "sequences", "slots", "tokens", "value"}


@dataclass(frozen=True)
class Answer:
    """What a command answered.

    lines       a printed line, or a path in the document: a number, or yes and no
    terms       the rows that "total" is the sum of; empty where nothing is summed
    """

    words: str
    lines: dict[str, Number]
    terms: dict[str, int]

    def line(self, name: str) -> Number:
        """The number of one line.

        Raises      ValueError with the lines that there are
        """
        if name not in self.lines:
            known = ", ".join(self.lines)
            raise ValueError(f"'memlab {self.words}' has no line {name!r}; known: {known}")
        return self.lines[name]

    def in_bytes(self, name: str) -> bool:
        """Whether a line is a size, and no count."""
        return name.rpartition(".")[2] not in COUNTS


def answer(words: str) -> Answer:
    """The answer of a command, given as one would type it, with or without `memlab`.

    Raises      ValueError for words that are no such command, and for what the command refuses
    """
    try:
        given = shlex.split(words)
    except ValueError as error:
        raise ValueError(f"{words!r}: {str(error).lower()}") from None
    if given[:1] == ["memlab"]:
        given = given[1:]
    if not given or given[0] not in ASKED:
        known = ", ".join(ASKED)
        raise ValueError(f"{words!r} cannot be asked from a file; memlab's {known} can")
    return _lines(" ".join(given), _asked(given))


def _asked(given: list[str]) -> dict[str, Any]:
    """The document that the command prints with --json."""
    from . import parser

    out, err = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            options = parser(given[0]).parse_args(given)
    except SystemExit as end:
        if not end.code:
            raise ValueError(
                f"'memlab {' '.join(given)}' asks for help, not for a figure"
            ) from None
        said = err.getvalue().strip().removeprefix("memlab: ")
        raise ValueError(said) from None
    for name in REFUSED:
        if getattr(options, name, None) is not None:
            raise ValueError(f"--{name} is for a reader at a shell; leave it out")
    options.json = True
    said = answered(options)
    return json.loads(said[0] if isinstance(said, tuple) else said)


def _lines(words: str, found: dict[str, Any]) -> Answer:
    """The document as lines: first as the command prints them, then by their paths."""
    peak = found.get("peak")
    whole = found.get("rows") if not isinstance(peak, dict) else peak["contents"]
    terms = {name: size for name, size in (whole or {}).items() if size}
    lines: dict[str, Number] = dict(terms)
    if terms:
        lines["total"] = sum(terms.values())
    for name, size in (found.get("held") or {}).items():
        lines[name.replace("_", " ")] = size
    if isinstance(peak, dict) and peak["first_step_bytes"] is not None:
        lines["peak of the first step"] = peak["first_step_bytes"]
    for name, size in _paths(found):
        lines.setdefault(name, size)
    return Answer(words, lines, terms)


def _paths(found: dict[str, Any], before: str = "") -> list[tuple[str, Number]]:
    """Every number and every yes or no, by the names that lead to it."""
    every: list[tuple[str, Number]] = []
    for name, value in found.items():
        if not before and name in REPEATED:
            continue
        path = f"{before}{name}"
        if isinstance(value, dict):
            every += _paths(value, f"{path}.")
        elif isinstance(value, (bool, int, float)):
            every.append((path, value))
    return every
