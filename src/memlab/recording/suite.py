"""The suite: run its cases one by one, and lose none, whatever happens to it."""

import fnmatch
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence

import torch

from ..files.records import COUNTERS, Row
from ..measure import cuda
from . import engine, loops, pruned, subprocess_cases, techniques
from . import single_terms as terms
from . import whole_steps as steps
from .case import EXACT, KERNELS, SCRATCH, Case, Predicted
from .meter import NOTHING, Counted, measured

DEVICES = ("cuda", "cpu")
LONGEST = 300  # characters of a message


def cases(only: Sequence[str] = ()) -> list[Case]:
    """All cases, or those whose name or one of whose rows begins with, or matches, one of `only`.

    Raises      ValueError for a pattern that nothing matches
    """
    found = [
        *terms.cases(),
        *steps.cases(),
        *techniques.cases(),
        *pruned.cases(),
        *engine.cases(),
        *loops.cases(),
        *subprocess_cases.cases(),
    ]
    for pattern in only:
        if not any(_matches(case, pattern) for case in found):
            groups = dict.fromkeys(case.name.partition("/")[0] for case in found)
            raise ValueError(f"nothing is called {pattern!r}; known: {', '.join(groups)}")
    return [case for case in found if not only or any(_matches(case, each) for each in only)]


def _matches(case: Case, pattern: str) -> bool:
    whole = pattern.rstrip("/")
    names = [case.name, *case.names()]
    begins = any(name == whole or name.startswith(f"{whole}/") for name in names)
    return begins or any(fnmatch.fnmatchcase(name, pattern) for name in names)


def chosen_device(asked: str | None) -> str:
    """ "cuda" or "cpu": what was asked for, else what is there.

    Raises      ValueError for another word, and for CUDA where there is none
    """
    if asked is None:
        return "cuda" if cuda.available() else "cpu"
    if asked not in DEVICES:
        raise ValueError(f"unknown device {asked!r}; known: {', '.join(DEVICES)}")
    if asked == "cuda" and not cuda.available():
        raise ValueError("device 'cuda': this torch build sees no CUDA device; --device cpu works")
    return asked


def rows(chosen: Sequence[Case], device: str, tell: Callable[[str], None]) -> Iterator[list[Row]]:
    """The rows of one case after another; a case that raises yields rows that say so."""
    for case in chosen:
        tell(case.name)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield one(case, device)


def one(case: Case, device: str) -> list[Row]:
    """The rows of one case. Nothing that it raises gets out, but for an interruption."""
    predicted: dict[str, Predicted] = {}
    found: dict[str, Counted] = {}
    state, message = "measured", ""
    try:
        predicted = dict(case.predict(device))
        if message := case.lacks(device):
            state = "skipped"
        else:
            found = measured(case.run, device)
    except Exception as error:  # a row that fails is a finding
        lines = str(error).strip().splitlines() or [""]
        state, message = "failed", f"{type(error).__name__}: {lines[0]}"[:LONGEST]
        if device == "cuda":
            _let_go()
    return [_row(case, moment, device, predicted, found, state, message) for moment in case.terms]


def _row(
    case: Case,
    moment: str,
    device: str,
    predicted: dict[str, Predicted],
    found: dict[str, Counted],
    state: str,
    message: str,
) -> Row:
    said, counted = predicted.get(moment, Predicted()), found.get(moment, NOTHING)
    if state == "measured" and counted[case.compared] is None:
        state, message = "failed", f"the run noted no {case.compared} bytes at {moment!r}"
        counted = NOTHING
    scratch = device == "cuda" and moment in case.scratch
    return Row(
        name=f"{case.name}/{moment}",
        term=case.terms[moment],
        what=f"{case.what}: {moment.replace('_', ' ')}",
        by=said.by,
        predicted=said.bytes,
        measured={name: counted[name] for name in COUNTERS},
        compared=case.compared,
        above=SCRATCH if scratch else 0,
        below=0,
        why=KERNELS if scratch else EXACT,
        state=state,
        message=message,
    )


def _let_go() -> None:
    """After an error on the device: nothing of it may count for the next case."""
    try:
        torch.cuda.empty_cache()
    except RuntimeError:
        pass  # the device itself is gone; every case after this one will say so


def on_terminal(name: str) -> None:
    """Say on standard error which case runs, where somebody is looking."""
    if sys.stderr.isatty():
        columns = os.get_terminal_size(sys.stderr.fileno()).columns
        print(f"\r{name[: columns - 1]:{columns - 1}}", end="", file=sys.stderr, flush=True)
