"""`memlab explain CONFIG --engine vllm --seen LOG`: a start-up log row by row, or one figure."""

from __future__ import annotations

import argparse
import os

from ..engines import Engine
from ..engines.engine import ENGINES
from ..explain.serving import in_parts, of_a_figure, of_log, served
from ..explain.serving_words import HEADINGS, MORE
from ..files.engine_log import ENDS, EngineLog, read
from . import arguments, serve
from .document import document

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    pass

SHOWN = 40  # characters of what was pasted that a refusal repeats


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of a serving engine."""
    words = "as `memlab serve` has them; what the log says itself need not be said"
    group = parser.add_argument_group("a serving engine", words)
    words = f"of --seen, its log or a figure of it: {' or '.join(ENGINES)}"
    group.add_argument("--engine", choices=ENGINES, help=words)
    serve.add_options(group)


def run(options: argparse.Namespace, name: str | None, told: str) -> tuple[str, int]:
    """What the command prints, and its status: 1 where the log's engine did not start.

    Raises      ValueError for what is not described, and for a log of the other engine
    """
    from ..base.messages import say

    log, size = _seen(options, told)
    if log is not None and options.engine is None:
        options.engine = log.engine
    if name is None:
        return _alone(options, log, told)
    options.model = name
    model, said = serve.asked(options)
    if options.precision:
        said["dtype"] = options.precision
    on = None if options.on is None else arguments.card(options.on)
    if log is None:
        if on is None:
            raise ValueError(f"--seen {told}: on which card? --on CARD")
        pool, notes = of_a_figure(model, Engine(**said), on, size)
        if options.json:
            return document("explain --engine", **in_parts(pool) | {"notes": notes}), 0
        return "\n".join(map(say, notes)), 0
    if log.engine != options.engine:
        raise ValueError(f"--engine {options.engine}: the log is of {log.engine}")
    found = served(model, log, said, on)
    text = document("explain --engine", **found.as_dict()) if options.json else str(found)
    return text, 1 if log.refused else 0


def _alone(options: argparse.Namespace, log: EngineLog | None, told: str) -> tuple[str, int]:
    """What the log says by itself, and how to ask for more.

    Raises      ValueError for a size, of which nothing can be said alone, and with --json
    """
    from ..base.message import Message
    from ..base.messages import say
    from ..base.table import as_text

    if log is None:
        raise ValueError(f"{told}: of which model? say CONFIG too, such as llama-3-8b")
    file = told if os.path.isfile(told) else "log.txt"
    again = f"memlab explain CONFIG {file}"
    if options.json:
        raise ValueError(f"--json with a log of {log.engine}: say its model too, {again}")
    lines, notes = of_log(log)
    table = [[HEADINGS[0], HEADINGS[2]], *([line.term, line.cells()[2]] for line in lines)]
    notes.append(Message(MORE, again))
    return "\n".join([as_text(table), *map(say, notes)]), 1 if log.refused else 0


def is_log(told: str) -> bool:
    """Whether a file, or the text itself, is a start-up log."""
    if not os.path.isfile(told):
        return read(told) is not None
    with open(told, "rb") as file:
        if file.read(1) in (b"\x80", b"{"):  # a snapshot, a timeline
            return False
    return read(_ends(told)) is not None


def _seen(options: argparse.Namespace, told: str) -> tuple[EngineLog | None, int]:
    """The log that is a file or the text itself; else the bytes of a size."""
    text = _ends(told) if os.path.isfile(told) else told
    log = read(text)
    if log is not None:
        return log, 0
    shown = told if len(told) <= SHOWN else told[:SHOWN] + " ..."
    none = f"{shown}: no line about memory is in it that {options.engine} prints when it starts"
    if text is not told:
        raise ValueError(none)
    try:
        return None, arguments.logged(told)
    except ValueError as error:
        raise ValueError(none if len(told) > SHOWN else f"{none}; as a size: {error}") from None


def _ends(path: str) -> str:
    """The beginning and the end of a file, which is all that is read of a long log."""
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        data = file.read(ENDS)
        if size > ENDS:
            file.seek(max(ENDS, size - ENDS))
            data += b"\n" * (size > 2 * ENDS) + file.read(ENDS)
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8"
    return data.decode(encoding, errors="replace")
