"""The `memlab` command: one module for each of its words.

Only the module of the command that was asked for is imported, so that a quick question has a quick
answer.
"""

from __future__ import annotations

import os
import sys
from functools import partial
from importlib import import_module

from ..base.safe_text import narrowed, printable
from .interrupt import Interruptible
from .parser import Parser
from .refusal import crashed, failed, say

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

# Command: what it is for. Each is a module of its name; the lists share one.
COMMANDS = {
    "estimate": "Derive memory from a config: what stays, and with --tokens the peak of a step.",
    "trace": "Trace a step or a call on tensors without values: every byte, every moment, no GPU.",
    "rehearse": "Run a training script unmodified, without a GPU and weights: what would it hold?",
    "fit": "Find the largest batch (--tokens), the longest sequence (--batch), or what to change.",
    "serve": "What vLLM or SGLang leaves on a card for conversations, and its start-up log.",
    "explain": "Read an out-of-memory message; list causes of bytes that were not predicted.",
    "measure": "Train a small model and compare it with the formula.",
    "watch": "Run a program, write down what memory it takes, and stop it at a limit.",
    "record": "Predict a suite of small runs, measure them on this computer's device, compare.",
    "devices": "List GPUs and the memory that they really offer.",
    "models": "List the presets and their parameters.",
    "formats": "List the storage formats, their bytes and sources.",
    "recipes": "List the recipes, their bytes and what they hide.",
    "claims": "What a field note claims about memory, with a verdict for each claim.",
    "audit": "Hold a list of claims, such as a model card's, against what memlab answers.",
    "check": "Which exercises learners' notebooks solve, and which slips are likely.",
    "doctor": "Whether this machine is ready for the chapters: ready, optional or missing.",
    "schema": "What --json prints, field by field, as JSON Schema.",
    "completion": "Print what makes a shell complete commands, options and their values.",
}
LISTS = ("devices", "models", "formats", "recipes")


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit status.

    A command returns what is to be printed; or that and its status; or its status alone if it has
    said all it had to.

    Status      0; 1 where the answer is no; 2 for input that makes no sense; 70 where memlab
                itself is wrong; 130 after Ctrl-C
    """
    _any_encoding()
    words = (sys.argv[1:] if arguments is None else arguments) or ["--help"]
    if words[0] == "help":
        words = [*words[1:], "--help"]
    try:
        with Interruptible():
            return _run(words, at_a_shell=arguments is None)
    except KeyboardInterrupt as stopped:
        say("; ".join(["stopped by hand", *filter(None, map(str, stopped.args))]))
        return 130


def _run(words: list[str], at_a_shell: bool) -> int:
    if words[0][:1] != "-" and words[0] not in COMMANDS:
        from ..base.suggestion import did_you_mean

        near = did_you_mean(words[0], COMMANDS)
        return failed(f"no command {words[0]!r}; {near}known: {', '.join(COMMANDS)}", words)
    from .asked import answered

    asked: tuple[Any, dict[str, Any]] | None = None
    try:
        _speak(at_a_shell)
        options = parser(words[0]).parse_args(words)
        asked = options, dict(vars(options))
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
        said = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        return failed(said, words)
    except (ValueError, TypeError) as error:
        if asked is None:
            return failed(str(error), words)
        from .nearest import as_typed, hint  # only a refusal needs it

        said = as_typed(str(error), asked[0])
        return failed(said + hint(said, *asked), words)
    except Exception as error:  # 1 would say that the answer is no
        return crashed(error, words)


def _speak(at_a_shell: bool) -> None:
    """Answer in the language that the environment asks for.

    Raises      ValueError for a MEMLAB_LANG that is none
    """
    asked = os.environ.get("MEMLAB_LANG")
    names = ("LC_ALL", "LC_MESSAGES", "LANG") if at_a_shell else ()
    locale = next(filter(None, map(os.environ.get, names)), "")
    if not asked and locale[:2] in ("", "C", "C.", "en", "PO"):
        return  # the usual case, in which nothing has to be read
    from ..base.messages import called, languages, use_language

    found = called(asked or locale)
    if found is None and asked:
        raise ValueError(
            f"MEMLAB_LANG={asked} is no language here; known: {', '.join(languages())}"
        )
    if found and at_a_shell:
        use_language(found)


def _any_encoding() -> None:
    """Let a terminal or a pipe that lacks a sign show its nearest spelling, not stop the answer."""
    import codecs

    codecs.register_error("memlab", narrowed)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a notebook's has no such method, and knows all signs
            stream.reconfigure(errors="memlab")


def parser(asked: str) -> Parser:
    """The parser of one command, or of all where it is not known (help, a slip).

    Only what was asked has its options: those of the other commands are not even imported.
    """
    from ..base.versions import told
    from .examples import about_languages, epilog

    whole = Parser(
        prog="memlab",
        description="Where every byte of memory goes when a language model trains.",
        epilog=None if asked in COMMANDS else about_languages(),
    )
    whole.add_argument("--version", action="version", version=told())
    commands = whole.add_subparsers(required=True, metavar="COMMAND")
    for name in [asked] if asked in COMMANDS else COMMANDS:
        words = COMMANDS[name]
        one = commands.add_parser(name, help=words, description=words)
        if name == asked:
            module = import_module(f"{__name__}.{'lists' if name in LISTS else name}")
            one.set_defaults(run=getattr(module, name if name in LISTS else "run"))
            module.add_arguments(one)
            one.epilog = "\n\n".join(filter(None, [one.epilog, epilog(name)]))
    whole.of = commands.choices.get(asked)
    for each in (whole, *commands.choices.values()):
        each.others = {name: partial(parser, name) for name in COMMANDS}
    return whole
