"""What is not described is rehearsed: the script of its trainer, written here and run as it is.

One way for every combination: `memlab.estimate` refuses with NotDescribed, and this answers. A slip
in what was typed is another error and never gets here.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import shlex
import sys
from importlib.machinery import PathFinder

from ..base.message import Message
from ..base.messages import say as spoken
from ..base.not_described import NotDescribed
from ..rehearse.trainers import TRAINERS
from ..verdict import DOES_NOT_FIT
from .document import document
from .refusal import say

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ..model import Model
    from ..recipe import Recipe
    from ..rehearse.script import Script
    from ..run import Run

TOLD = "rehearsed, as no description has it: {refusal}"
AGAIN = "again: {command}"
KEEPS = "again: add --script {name}, then {command}"
KEPT = "{path} is its script; {command} runs it on what is not there"
WAITS = "rehearsing the script of its trainer, in some seconds"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The file that keeps the script, and trainers that are known to it alone."""
    words = "write the trainer's own script of these options, which a GPU runs as it is"
    parser.add_argument("--script", metavar="FILE.py", help=words)
    loop = parser._option_string_actions["--loop"]
    loop.choices = tuple(dict.fromkeys([*(loop.choices or ()), *TRAINERS]))
    loop.metavar, loop.help = "LOOP", f"{', '.join(loop.choices)}: {loop.help}"


def trainer_of(options: argparse.Namespace) -> str | None:
    """A loop that Run has not, for which another one stands whose rules and defaults it shares."""
    from ..run.loops import LOOPS

    loop = options.loop
    if loop in LOOPS or loop not in TRAINERS:
        return None
    options.loop = TRAINERS[loop].like
    return str(loop)


def refuse(loop: str | None) -> None:
    """Send a trainer that no description has to its rehearsal.

    Raises      NotDescribed
    """
    if loop is not None:
        raise NotDescribed(Message("loop={loop} is not described", loop=repr(loop)))


def kept(
    options: argparse.Namespace, model: Model, recipe: Recipe, how: Run, loop: str | None = None
) -> list[str]:
    """Write the script where --script says, and tell how it is rehearsed; or nothing."""
    if options.script is None:
        return []
    command = _write(options.script, _script(model, recipe, how, loop))
    return [spoken(Message(KEPT, path=options.script, command=command))]


def answer(
    options: argparse.Namespace,
    model: Model,
    recipe: Recipe,
    how: Run,
    refusal: NotDescribed,
    *,
    loop: str | None = None,
    on: Any = None,
    statuses: Mapping[str, int] | None = None,
) -> tuple[str, int]:
    """The rehearsal of what was refused, and the status of its verdict.

    on          the card that it shall fit, and `statuses` of the verdicts; None: none is asked for
    Raises      ValueError that begins with the refusal, where no script says it, where libraries
                are missing, and where the script itself fails
    """
    for flag in ("against", "posted", "plot", "spare", "cards"):
        if getattr(options, flag, None) is not None:
            raise ValueError(f"--{flag}: {refusal}")
    try:
        made = _script(model, recipe, how, loop)
    except ValueError as error:
        raise ValueError(f"{refusal}; nor is it rehearsed: {error}") from error
    if options.script is not None:
        again = Message(AGAIN, command=_write(options.script, made, on))
    else:
        again = Message(KEEPS, name="train.py", command=_command(made, "train.py", on))
    missing = [name for name in made.needs if not _there(name)]
    if missing:
        raise ValueError(
            f"{refusal}; it is rehearsed where the libraries are: pip install {' '.join(missing)}"
        )
    if not options.json:  # whose stderr is for a refusal, one line of JSON
        say(spoken(WAITS))
    found = _rehearsed(made, on)
    if found.status:
        last = (found.failure or "").strip().split("\n")[-1]
        raise ValueError(f"{refusal}; its script fails when it is rehearsed: {last}")
    status = 0 if found.verdict is None else (statuses or {})[found.verdict.word]
    if options.json:
        more = {"rehearsed": True, "refused": str(refusal), "script": made.text}
        return document("rehearse", **found.to_dict(), **more), status
    told = Message(TOLD, refusal=refusal.args[0])
    return "\n".join([spoken(told), str(found), spoken(again)]), status


def _script(model: Model, recipe: Recipe, how: Run, loop: str | None) -> Script:
    from ..base.extras import missing

    try:
        from ..lab.subject import settings_of
    except ModuleNotFoundError as error:
        raise ValueError(missing("a trainer's script", error, "torch")) from error
    from ..rehearse.script import script

    return script(settings_of(model), model, recipe, how, loop)


def _rehearsed(made: Script, on: Any) -> Any:
    """In a folder of its own; what the script and its libraries print is not the answer."""
    import tempfile

    from ..rehearse import of_command

    nowhere = io.StringIO()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "train.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(made.text)
        with contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
            found = of_command([*made.command, path], on=on)
            if found.verdict is not None and found.verdict.word == DOES_NOT_FIT:
                found.remedies()
            found.replay  # noqa: B018 - what it says is known before the folder is gone
    return found


def _there(name: str) -> bool:
    return name in sys.modules or PathFinder.find_spec(name) is not None


def _write(path: str, made: Script, on: Any = None) -> str:
    with open(path, "w", encoding="utf-8") as file:
        file.write(made.text)
    return _command(made, path, on)


def _command(made: Script, path: str, on: Any = None) -> str:
    card = [] if on is None else ["--on", on if isinstance(on, str) else f"{on.limit} B"]
    return shlex.join(["memlab", "rehearse", *card, "--", *made.command, path])
