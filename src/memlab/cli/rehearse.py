"""`memlab rehearse`: run a training script as it is, without a GPU and without weights."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys

from ..base.extras import missing
from ..base.safe_text import printable
from ..rehearse import STEPS, of_command
from ..verdict import DOES_NOT_FIT
from .brought import count
from .document import document
from .fit import STATUS, STATUSES

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    pass

MORE = f"{STATUSES} A script that fails by itself keeps its own status."
PROGRAM = """
program       python train.py ..., train.py ..., python -m package ...,
              torchrun, accelerate launch or deepspeed, of which it is one rank
many cards    of one process: CUDA_VISIBLE_DEVICES=0,1 before the program;
              each card is counted by itself
does not fit  with --on: up to three changes are rehearsed too, which takes
              as long again for each
is not done   no weight is read, no checkpoint written, no run tracker told;
              compiled code runs as it is written
runs          imports, arguments, data, tokenizers, loops and logging as ever;
              use it on scripts that you would run
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """How a program is rehearsed, and the program."""
    parser.description = f"{parser.description} {MORE}"
    parser.usage = "memlab rehearse [OPTIONS] -- PROGRAM [ARGUMENT ...]"
    parser.epilog = PROGRAM
    parser.add_argument("--on", metavar="DEVICE", help="does it fit? a device or a size: 'H100'")
    parser.add_argument(
        "--steps",
        type=count,
        default=STEPS,
        metavar="N",
        help=f"optimizer steps, after which it is stopped (default {STEPS})",
    )
    parser.add_argument(
        "--backend",
        choices=["cuda", "cpu"],
        default="cuda",
        help="cpu: as on a machine without a card (default cuda)",
    )
    parser.add_argument(
        "--assume",
        metavar="WHAT",
        help="where values decide: routing=even or fullest, mask=all or half (the first ones)",
    )
    parser.add_argument(
        "--gpus", type=count, metavar="N", help="as one of N ranks, as torchrun starts them"
    )
    parser.add_argument(
        "--rank",
        type=lambda said: int(said) if said.isdigit() else said,
        metavar="K",
        help="which one, from 0, or all (default: the first and the last; the fullest is told)",
    )
    parser.add_argument(
        "--longest", action="store_true", help="let every batch be that of the longest examples"
    )
    parser.add_argument("--json", action="store_true", help="print JSON for programs")
    parser.add_argument("--plot", metavar="FILE.svg", help="draw the timeline of the last step")
    parser.add_argument("--snapshot", metavar="FILE", help="write it for PyTorch's memory viewer")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="PROGRAM [ARGUMENT ...]")


def run(options: argparse.Namespace) -> tuple[str, int] | int:
    """What the command prints, and the status of the verdict; a failed program's own.

    Raises      ValueError without torch, and for what cannot be rehearsed
    """
    words = options.command[1:] if options.command[:1] == ["--"] else options.command
    names = ("on", "steps", "backend", "assume", "gpus", "rank", "longest")
    asked = {name: getattr(options, name) for name in names}
    files = [path for path in (options.plot, options.snapshot) if path]
    for path in files:  # said now, not after the program
        folder = os.path.dirname(path) or "."
        if not os.access(folder, os.W_OK) or os.path.isdir(path):
            raise ValueError(f"{path!r} cannot be written: name a file in a folder that is yours")
    # The program's own output stays what it is; JSON has the standard output to itself.
    out = contextlib.redirect_stdout(sys.stderr) if options.json else contextlib.nullcontext()
    try:
        with out:
            found = of_command(words, **asked)
            if (
                found.verdict is not None
                and found.verdict.word == DOES_NOT_FIT
                and not found.status
            ):
                found.remedies()
    except ModuleNotFoundError as error:
        if error.name not in ("torch", "numpy"):
            raise
        raise ValueError(missing("rehearsing", error, "torch")) from error
    if found.tracker.timeline:  # of a program that failed too, as far as it went
        if options.plot:
            found.plot().save(options.plot)
        if options.snapshot:
            found.save_snapshot(options.snapshot)
    elif files:
        print(f"nothing was allocated: {', '.join(files)} is not written", file=sys.stderr)
    if found.status:
        print(printable(str(found), keep="\n"), file=sys.stderr)
        return int(found.status)
    status = 0 if found.verdict is None else STATUS[found.verdict.word]
    told = {"rehearsed": True, "refused": None, "script": None}
    return (document("rehearse", **found.to_dict(), **told) if options.json else str(found)), status
