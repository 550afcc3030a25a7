"""Rehearse a program: its own script, unmodified, on a card that is not there.

Importing this imports no torch; the first rehearsal does.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from os import PathLike
    from typing import Any

    from ..devices import Device
    from .command import Program

STEPS = 2  # of the optimizer: the first makes its states, the second has them


def rehearse(
    program: str | PathLike[str] | Callable[..., Any],
    arguments: Sequence[Any] = (),
    *,
    on: str | int | Device | None = None,
    steps: int = STEPS,
    backend: str = "cuda",
    assume: str | None = None,
    gpus: int | None = None,
    rank: int | str | None = None,
    longest: bool = False,
) -> Any:
    """Run a training script as it is, without a GPU and without weights, and say what it holds.

    program     the path of a file: "train.py"; or a function, which makes its own model and data.
                It runs in this process, and nothing stays changed
    arguments   what stands behind it on a command line: ["--epochs", "3"]; of a function, its own
    on          a card ("RTX 4090"), a size ("24 GB"), or bytes; None: no verdict
    steps       optimizer steps to run; the program is stopped after the last one
    backend     "cpu" runs it as on a machine without a card
    assume      "routing=fullest,mask=half": see memlab.measure.fake_cuda.assumed
    gpus        start it as one of so many ranks, as torchrun would
    rank        which one, from 0; "all" for each of them; None for the first and the last. The
                answer is that of the fullest; `others` has the rest
    longest     let every batch of a loader be that of the longest examples
    Shapes      gives a Rehearsal: peak, contents(), holders(), verdict, out_of_memory, remedies(),
                to_dict()
    Example     memlab.rehearse("train.py", ["--batch", "8"], on="RTX 4090")
    Raises      ValueError for what cannot be rehearsed, by name; TypeError for no program
    """
    import os

    said: Any = {"on": on, "steps": steps, "backend": backend, "assume": assume, "gpus": gpus}
    said |= {"rank": rank, "longest": longest}
    if callable(program):
        from .command import of_function

        return _rehearsed(lambda: of_function(program, list(arguments)), **said)
    if not isinstance(program, (str, os.PathLike)):
        raise TypeError(
            f"program is a {type(program).__name__}; the path of a file or a function is needed"
        )
    return of_command([os.fspath(program), *arguments], **said)


def of_command(words: list[str], **said: Any) -> Any:
    """Rehearse what a command line runs; the named arguments are those of `rehearse`."""
    from .command import program

    return _rehearsed(lambda: program(list(words)), **said)


def _rehearsed(
    which: Callable[[], Program],
    *,
    on: str | int | Device | None = None,
    steps: int = STEPS,
    backend: str = "cuda",
    assume: str | None = None,
    gpus: int | None = None,
    rank: int | str | None = None,
    longest: bool = False,
    observer: Any = None,
) -> Any:
    from ..devices import USUAL, card
    from ..measure.fake_cuda.assumed import policies
    from ..units import whole

    found = card(USUAL if on is None else on)
    if found.capability is None and found.marketed:
        raise ValueError(f"{found.name} is a card of ROCm; only CUDA's can be rehearsed")
    if whole("steps", steps) < 1:
        raise ValueError(f"steps={steps}; at least one optimizer step is needed")
    if backend not in ("cuda", "cpu"):
        raise ValueError(f"backend={backend!r}; known: cuda, cpu")
    if backend == "cpu" and on is not None:
        raise ValueError(f"on={on!r}: without a card (backend cpu) there is nothing to fit")
    policy, program = policies(assume), which()
    if gpus is not None:
        if whole("gpus", gpus) < 1:
            raise ValueError(f"gpus={gpus}; at least one is needed")
        if program.ranks not in (None, gpus):
            raise ValueError(f"gpus={gpus}, but the command starts {program.ranks} ranks; say one")
        program.ranks = program.local = gpus
    if program.ranks and backend == "cpu":
        raise ValueError(f"{program.ranks} ranks without a card (backend cpu) are not rehearsed")
    from .asked import Asked
    from .run import run_ranks

    asked = Asked(
        program, found, on is not None, steps, backend, policy, longest, observer=observer
    )
    return run_ranks(asked, _ranks(rank, program.ranks))


def _ranks(said: int | str | None, ranks: int | None) -> list[int]:
    """Which ranks are rehearsed."""
    from ..units import whole

    if said is None:
        return sorted({0, (ranks or 1) - 1})
    if ranks is None:
        raise ValueError(f"rank={said!r}: of how many? gpus= says that")
    if said == "all":
        return list(range(ranks))
    if isinstance(said, str) or not whole("rank", said) < ranks:
        raise ValueError(f"rank={said!r}; of {ranks} ranks it is 0 to {ranks - 1}, or 'all'")
    return [said]
