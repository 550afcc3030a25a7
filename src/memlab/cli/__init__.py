"""The `memlab` command: one module for each of its words.

Only the module of the command that was asked for is imported, so that a quick question has a quick
answer.
"""

import codecs
import os
import sys
from importlib import import_module

from .. import __version__
from ..base.safe_text import narrowed, printable
from .asked import answered
from .examples import epilog
from .interrupt import Interruptible
from .slips import Formatter, Parser, did_you_mean

# Command: the module whose `add_parser` hooks it in. The lists share one.
COMMANDS = {
    "estimate": "estimate",
    "trace": "trace",
    "rehearse": "rehearse",
    "fit": "fit",
    "explain": "explain",
    "measure": "measure",
    "watch": "watch",
    "record": "record",
    "devices": "lists",
    "models": "lists",
    "formats": "lists",
    "recipes": "lists",
    "claims": "claims",
    "audit": "audit",
}


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit status.

    A command returns what is to be printed; or that and its status; or its status alone if it has
    said all it had to.

    Status      0; 1 where the answer is no; 2 for input that makes no sense; 130 after Ctrl-C
    """
    _any_encoding()
    words = (sys.argv[1:] if arguments is None else arguments) or ["--help"]
    try:
        with Interruptible():
            return _run(words)
    except KeyboardInterrupt as stopped:
        _say("; ".join(["stopped by hand", *filter(None, map(str, stopped.args))]))
        return 130


def _run(words: list[str]) -> int:
    if words[0][:1] != "-" and words[0] not in COMMANDS:
        near = did_you_mean(words[0], COMMANDS)
        _say(f"no command {words[0]!r}; {near}known: {', '.join(COMMANDS)}")
        return 2
    options = parser(words[0]).parse_args(words)
    try:
        answer = answered(options)
        if isinstance(answer, int):
            return answer
        said, status = answer if isinstance(answer, tuple) else (answer, 0)
        print(printable(said, keep="\n"), flush=True)
        return status
    except BrokenPipeError:  # the reader (`head`) has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:  # as cat says it, without a number
        _say(f"{error.filename}: {error.strerror}" if error.filename else str(error))
        return 2
    except (ValueError, TypeError) as error:
        _say(str(error))
        return 2


def _say(words: str) -> None:
    print(f"memlab: {printable(words, keep=chr(10))}", file=sys.stderr)


def _any_encoding() -> None:
    """Let a terminal or a pipe that lacks a sign show its nearest spelling, not stop the answer."""
    codecs.register_error("memlab", narrowed)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a notebook's has no such method, and knows all signs
            stream.reconfigure(errors="memlab")


def _languages() -> str:
    """The line of `memlab --help` about languages."""
    from ..base.messages import languages

    others = " or ".join(languages()[1:])
    return f"With MEMLAB_LANG={others} in the environment, answers are in that language."


def parser(asked: str) -> Parser:
    """The parser of one command, or of all where it is not known (help, a slip)."""
    whole = Parser(
        prog="memlab",
        description="Where every byte of memory goes when a language model trains.",
        epilog=None if asked in COMMANDS else _languages(),
    )
    whole.add_argument("--version", action="version", version=f"memlab {__version__}")
    commands = whole.add_subparsers(required=True, metavar="COMMAND")
    names = [asked] if asked in COMMANDS else COMMANDS
    for module in dict.fromkeys(COMMANDS[name] for name in names):
        import_module(f"{__name__}.{module}").add_parser(commands)
    for name, one in commands.choices.items():
        one.formatter_class = Formatter
        one.allow_abbrev = False  # `--card` would quietly be --cards, which is another question
        one.epilog = "\n\n".join(filter(None, [one.epilog, epilog(name)]))
    whole.of = commands.choices.get(asked)
    return whole
