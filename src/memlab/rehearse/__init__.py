"""Rehearse a program: its own script, unmodified, on a card that is not there.

Importing this imports no torch; the first rehearsal does.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike
    from typing import Any

    from ..devices import Device

STEPS = 2  # of the optimizer: the first makes its states, the second has them
CARD = "H100 80GB"  # that torch finds where nobody names one


def rehearse(
    program: str | PathLike[str],
    arguments: Sequence[str] = (),
    *,
    on: str | int | Device | None = None,
    steps: int = STEPS,
    backend: str = "cuda",
    assume: str | None = None,
    gpus: int | None = None,
) -> Any:
    """Run a training script as it is, without a GPU and without weights, and say what it holds.

    program     the path of a file: "train.py"; it runs in this process, and nothing stays changed
    arguments   what stands behind it on a command line: ["--epochs", "3"]
    on          a card ("RTX 4090"), a size ("24 GB"), or bytes; None: no verdict
    steps       optimizer steps to run; the script is stopped after the last one
    backend     "cpu" runs it as on a machine without a card
    assume      "routing=fullest,mask=half": see memlab.rehearse.assumed
    gpus        start it as the first of so many ranks, as torchrun would
    Shapes      gives a Rehearsal: peak, contents(), holders(), verdict, out_of_memory, to_dict()
    Example     memlab.rehearse("train.py", ["--batch", "8"], on="RTX 4090")
    Raises      ValueError for what cannot be rehearsed, by name; TypeError for no path
    """
    import os

    if not isinstance(program, (str, os.PathLike)):
        raise TypeError(f"program is a {type(program).__name__}; the path of a file is needed")
    return of_command([os.fspath(program), *arguments], on, steps, backend, assume, gpus)


def of_command(
    words: list[str],
    on: str | int | Device | None,
    steps: int = STEPS,
    backend: str = "cuda",
    assume: str | None = None,
    gpus: int | None = None,
) -> Any:
    """Rehearse what a command line runs; the arguments are those of `rehearse`."""
    from ..devices import card
    from ..units import whole

    found = card(CARD if on is None else on)
    if found.capability is None and found.marketed:
        raise ValueError(f"{found.name} is a card of ROCm; only CUDA's can be rehearsed")
    if whole("steps", steps) < 1:
        raise ValueError(f"steps={steps}; at least one optimizer step is needed")
    if backend not in ("cuda", "cpu"):
        raise ValueError(f"backend={backend!r}; known: cuda, cpu")
    if backend == "cpu" and on is not None:
        raise ValueError(f"on={on!r}: without a card (backend cpu) there is nothing to fit")
    from .assumed import policies
    from .command import program

    policy = policies(assume)
    asked = program(list(words))
    if gpus is not None:
        if whole("gpus", gpus) < 1:
            raise ValueError(f"gpus={gpus}; at least one is needed")
        if asked.ranks not in (None, gpus):
            raise ValueError(f"gpus={gpus}, but the command starts {asked.ranks} ranks; say one")
        asked.ranks = asked.local = gpus
    if asked.ranks and backend == "cpu":
        raise ValueError(f"{asked.ranks} ranks without a card (backend cpu) are not rehearsed")
    from .run import run

    return run(asked, found, named=on is not None, steps=steps, backend=backend, policy=policy)
