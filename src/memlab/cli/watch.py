"""`memlab watch`: run a program, write down its memory, stop it at a limit."""

from __future__ import annotations

import argparse
from functools import partial

from ..base.extras import missing
from .refusal import say_document

MORE = """
limits      20GiB, 24GB or 90%: of the card's memory where there is one, else of
            the machine's or the container's
            A limit is seen by looking: a program that takes gigabytes a second
            is above --hard-limit before it is stopped. Where it must not be,
            give it a container or `ulimit -v` as well
output      the program's own passes untouched; what memlab says goes to stderr,
            and a live line to the terminal, if stderr is one; with --json the
            last line of stderr is one document
exit code   the program's own; 128 + n if signal n ended it (130: Ctrl-C); 121
            where it was stopped at the hard limit; 127 if there is no such
            program, 126 if it cannot be run; 2 for options that make no sense
signals     Ctrl-C, SIGTERM and others are passed on to the program's group;
            processes that it leaves behind are stopped as well. kill -9 of
            memlab itself ends the program, and not what the program started
not seen    files in /dev/shm that no process has mapped
alive       with one line in the program, memlab.measure.announce(), it says
            which tensors it held when it was stopped
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Limits, a file, and a program."""
    parser.usage = "memlab watch [OPTIONS] -- PROGRAM [ARGUMENT ...]"
    parser.epilog = MORE
    parser.add_argument("--soft-limit", metavar="SIZE", help="warn once when it is reached")
    parser.add_argument(
        "--hard-limit", metavar="SIZE", help="stop the program: SIGTERM, after --grace SIGKILL"
    )
    parser.add_argument(
        "--every", type=float, default=0.1, metavar="S", help="seconds between looks (default 0.1)"
    )
    parser.add_argument(
        "--grace", type=float, default=5.0, metavar="S", help="seconds to end in (default 5)"
    )
    parser.add_argument(
        "--out", metavar="FILE.json", help="write the timeline there, and a picture to FILE.svg"
    )
    parser.add_argument(
        "--of",
        choices=["device", "process"],
        help="whose memory the limits are about (default: the device's, if there is one)",
    )
    parser.add_argument("--quiet", action="store_true", help="no live line")
    words = "end with a line of JSON for programs, on stderr"
    parser.add_argument("--json", action="store_true", help=words)
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="PROGRAM [ARGUMENT ...]")


def run(options: argparse.Namespace) -> int:
    """Run the program; the exit code.

    Raises      ValueError where psutil is missing, and what `memlab.watch.run.watch` raises
    """
    try:
        from ..watch.run import watch
    except ModuleNotFoundError as error:
        raise ValueError(missing("watching", error, "watch")) from error

    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    return watch(
        command,
        soft_limit=options.soft_limit,
        hard_limit=options.hard_limit,
        every=options.every,
        grace=options.grace,
        out=options.out,
        of=options.of,
        quiet=options.quiet,
        tell=partial(say_document, "watch") if options.json else None,
    )
