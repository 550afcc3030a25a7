"""Training scripts that take more memory than their authors predicted: find out why.

Each runs from a shell (`python -m memlab.lab.broken.validate`) and is meant to be opened. `run`
executes one where a notebook can watch it, and with the reader's mend in it.
"""

import linecache
from collections.abc import Sequence
from pathlib import Path

import torch

from ..quiet import quiet

FOLDER = Path(__file__).parent
SCRIPTS = ("validate", "resume", "attend")


def source(name: str) -> str:
    """The text of a script.

    Raises      ValueError for an unknown name
    """
    if name not in SCRIPTS:
        raise ValueError(f"unknown script {name!r}; known: {', '.join(SCRIPTS)}")
    return (FOLDER / f"{name}.py").read_text(encoding="utf-8")


def mended(name: str, *mends: tuple[str, str]) -> str:
    """The text of a script with some of its text replaced, each piece exactly once.

    Raises      ValueError for a piece that is not there exactly once
    """
    words = source(name)
    for old, new in mends:
        if words.count(old) != 1:
            raise ValueError(f"{old!r} stands {words.count(old)} times in {name}.py, not once")
        words = words.replace(old, new)
    return words


def run(name: str, arguments: str = "", mends: Sequence[tuple[str, str]] = ()) -> list[float]:
    """Run a script's `main` in this process, and return what it returns: its losses."""
    words, file = mended(name, *mends), f"{name}.py"
    linecache.cache[file] = (len(words), None, words.splitlines(keepends=True), file)
    space: dict = {"__name__": name}
    with quiet():  # its imports; what `main` says is heard
        exec(compile(words, file, "exec"), space)
    return [float(torch.as_tensor(loss).detach()) for loss in space["main"](arguments.split())]
