"""The `memlab` command: one module for each of its words.

Only the module of the command that was asked for is imported, so that a quick question has a quick
answer.
"""

import argparse
import os
import sys
from importlib import import_module

# Command: the module whose `add_parser` hooks it in. The lists share one.
COMMANDS = {
    "estimate": "estimate",
    "trace": "trace",
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
}


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit status (2 for input that makes no sense).

    A command returns what is to be printed, or its own exit status if it has said all it had to.
    """
    words = sys.argv[1:] if arguments is None else arguments
    options = _parser(words[0] if words else "").parse_args(words)
    try:
        answer = options.run(options)
        if isinstance(answer, int):
            return answer
        print(answer, flush=True)
    except BrokenPipeError:  # the reader (`head`) has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (ValueError, TypeError, OSError) as error:
        print(f"memlab: {error}", file=sys.stderr)
        return 2
    return 0


def _parser(asked: str) -> argparse.ArgumentParser:
    """The parser of one command, or of all where it is not known (help, a slip)."""
    parser = argparse.ArgumentParser(
        prog="memlab", description="Where every byte of memory goes when a language model trains."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    names = [asked] if asked in COMMANDS else COMMANDS
    for module in dict.fromkeys(COMMANDS[name] for name in names):
        import_module(f"{__name__}.{module}").add_parser(commands)
    return parser
