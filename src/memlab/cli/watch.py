"""`memlab watch`: run a program, write down its memory, stop it at a limit."""

from __future__ import annotations

import argparse

from ..base.extras import missing

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

WORDS = "Run a program, write down what memory it takes, and stop it at a limit."
MORE = """
limits      20GiB, 24GB or 90%: of the card's memory where there is one, else of
            the machine's or the container's
output      the program's own passes untouched; what memlab says goes to stderr,
            and a live line to the terminal, if stderr is one
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


def add_parser(commands: Any) -> None:
    """Hook the command into `memlab`."""
    parser = commands.add_parser(
        "watch",
        help=WORDS,
        description=WORDS,
        epilog=MORE,
        usage="memlab watch [OPTIONS] -- PROGRAM [ARGUMENT ...]",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=run)
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
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="PROGRAM [ARGUMENT ...]")


def run(options: argparse.Namespace) -> int:
    """Run the program; the exit code.

    Leaves out  --json: what --out writes is JSON, see memlab.files.timelines

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
    )
