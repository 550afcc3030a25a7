"""A learner's notebook: the exercises that its cells check, and what their stored outputs say.

Nothing of it is executed: a cell is parsed, and its outputs are read as the text that they are.
"""

from __future__ import annotations

import ast
import json
import os
import re

from ..base.frozen import dataclass
from ..base.message import Message
from ..base.untrusted import decoded, read_bytes

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

MOST = 2**26  # bytes of a notebook: a hundred times the book's longest, for pictures of a learner's
# What became of an exercise, the best first: of several answers to one the best counts.
SOLVED, WRONG, STOPPED, NOT_RUN, OPEN = "solved", "wrong", "stopped", "not run", "open"
STATES = (SOLVED, WRONG, STOPPED, NOT_RUN, OPEN)
SIGNS = {"✓": SOLVED, "✗": WRONG, "○": OPEN}
CALL = re.compile(r"^[^#\n]*\bcheck\(\s*[\"'](ex-[\w-]+)[\"']", re.M)
MAGIC = re.compile(r"^([ \t]*)[%!?].*$", re.M)
NO_CELLS = "it is no notebook: it has no list of cells"
OLD_FORMAT = "it is in format {1} of notebooks: open it in JupyterLab and save it, in format 4"
OTHER_LANGUAGE = "its kernel runs {1}; the exercises are in Python"
UNMARKED = (
    "its cells lost their tags, which tell solutions from answers: the first check of each "
    "exercise counts"
)
SENTENCES = (*STATES, NO_CELLS, OLD_FORMAT, OTHER_LANGUAGE, UNMARKED)


@dataclass(frozen=True)
class Answer:
    """What a notebook says of one exercise.

    said        the hint of a wrong answer, the error of a cell that stopped; else empty
    """

    exercise: str
    state: str
    said: str = ""


@dataclass(frozen=True)
class Attempt:
    """The answers of one notebook, each exercise once, and what to know about the file."""

    answers: tuple[Answer, ...]
    notes: tuple[str, ...]


def load(path: str | os.PathLike[str]) -> Any:
    """What a notebook's file holds.

    Raises      ValueError for what is no notebook, without the file's name; OSError
    """
    words = decoded(read_bytes(path, MOST))
    try:
        found = json.loads(words)  # NaN too, which Jupyter writes into outputs
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"it is not JSON: {error}") from None
    if not isinstance(found, dict) or not isinstance(found.get("cells"), list):
        if isinstance(found, dict) and isinstance(found.get("worksheets"), list):
            raise ValueError(Message(OLD_FORMAT, str(found.get("nbformat"))))
        raise ValueError(NO_CELLS)
    return found


def other_language(content: Any) -> str:
    """The language of a notebook that is not for Python; empty for Python's, and for none named."""
    metadata = _dict(content.get("metadata"))
    info, kernel = (_dict(metadata.get(name)) for name in ("language_info", "kernelspec"))
    found = str(info.get("name") or kernel.get("language") or "")
    return "" if found.lower() in ("", "python", "ipython") else found


def read(content: Any) -> Attempt:
    """The answers of a notebook that `load` has read."""
    cells = [cell for cell in content["cells"] if _dict(cell).get("cell_type") == "code"]
    checked = [(cell, checks(_text(cell.get("source")))) for cell in cells]
    marked = any(_tags(cell) or _solves(cell) for cell, found in checked if found)
    best: dict[str, Answer] = {}
    for cell, found in checked:
        if not found or _solves(cell):
            continue
        for one in _judged(cell, found):
            old = best.get(one.exercise)
            if old is None or marked and STATES.index(one.state) < STATES.index(old.state):
                best[one.exercise] = one
    notes = [] if marked or not best else [UNMARKED]
    if language := other_language(content):
        notes.append(Message(OTHER_LANGUAGE, language))
    return Attempt(tuple(best.values()), tuple(notes))


def code(content: Any) -> list[tuple[str, list[str]]]:
    """The code of each cell and its tags; a solution of the book has its tag, however it is known.

    Leaves out  text, and what is no cell
    """
    cells = [cell for cell in content["cells"] if _dict(cell).get("cell_type") == "code"]
    return [
        (
            _text(cell.get("source")),
            ["solution"] if _solves(cell) else [tag for tag in _tags(cell) if isinstance(tag, str)],
        )
        for cell in cells
    ]


def checks(source: str) -> list[tuple[str, bool | None]]:
    """The exercises that a cell checks, in order, and whether the answer is still `...`.

    Shapes      None where the answer comes from another cell
    """
    try:
        tree = ast.parse(MAGIC.sub(r"\1pass", source))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return [(name, None) for name in CALL.findall(source)]
    given: dict[str, bool] = {}
    found = []
    for node in sorted(_nodes(tree), key=lambda node: (node.lineno, node.col_offset)):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                given |= {target.id: _blank(node.value)} if isinstance(target, ast.Name) else {}
            continue
        name = _exercise(node)
        if name is not None:
            answer = node.args[1] if len(node.args) > 1 else None
            known = given.get(answer.id) if isinstance(answer, ast.Name) else _blank(answer)
            found.append((name, known))
    return found


def _nodes(tree: ast.AST) -> Iterator[Any]:
    return (node for node in ast.walk(tree) if isinstance(node, (ast.Assign, ast.Call)))


def _exercise(call: ast.Call) -> str | None:
    """The id in `check("ex-…", …)`, however check is reached."""
    called = getattr(call.func, "attr", getattr(call.func, "id", ""))
    if called != "check" or not call.args or not isinstance(call.args[0], ast.Constant):
        return None
    name = call.args[0].value
    return name if isinstance(name, str) and name.startswith("ex-") else None


def _blank(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Constant) and value.value is ...


def _judged(cell: Any, found: list[tuple[str, bool | None]]) -> Iterator[Answer]:
    """One answer for each check of a cell, from the lines that its outputs have."""
    lines, error = _outputs(cell)
    if len(found) == 1:
        lines = lines[-1:]  # a check in a loop
    for place, (name, blank) in enumerate(found):
        state, said = NOT_RUN, ""
        if place < len(lines):
            state, said = SIGNS[lines[place][0]], lines[place][1:].strip()
        elif error:
            state, said = STOPPED, error
        if state == OPEN and blank is False or state in (SOLVED, WRONG) and blank:
            state = NOT_RUN  # somebody wrote into the cell after it ran
        yield Answer(name, state, said if state in (WRONG, STOPPED) else "")


def _outputs(cell: Any) -> tuple[list[str], str]:
    """The lines that `check` printed, and the name of the error that ended the cell."""
    printed, error = "", ""
    outputs = cell.get("outputs")
    for one in outputs if isinstance(outputs, list) else []:
        kind = _dict(one).get("output_type")
        if kind == "stream" and one.get("name") != "stderr":
            printed += _text(one.get("text"))
        elif kind == "error":
            error = str(one.get("ename") or "error")
    lines = [line for line in printed.splitlines() if line[:1] in SIGNS and line[1:2] == " "]
    return lines, error


def _solves(cell: Any) -> bool:
    """Whether it is the book's own solution: by its tag, or by its id where tags were lost."""
    return "solution" in _tags(cell) or str(cell.get("id") or "").startswith(("sol-", "solution-"))


def _tags(cell: Any) -> list[Any]:
    tags = _dict(cell.get("metadata")).get("tags")
    return tags if isinstance(tags, list) else []


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    """A text, which a notebook may store as a list of its lines."""
    if isinstance(value, list):
        return "".join(part for part in value if isinstance(part, str))
    return value if isinstance(value, str) else ""
