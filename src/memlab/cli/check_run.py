"""`memlab check --run`: a copy of a notebook, executed by this Python's own kernel."""

from __future__ import annotations

import json
import os
import subprocess

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellTimeoutError, DeadKernelError

from ..base.message import Message
from ..files import learner
from .learners import DIED, LATE

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

SECONDS = 300  # of one cell: all cells of a chapter of the book take less than 20


def executed(file: str) -> tuple[Any, str]:
    """What a notebook holds after a run, and why not all of it ran; the file stays as it is.

    A cell that fails does not end the run. Another kernel than Python's is not started.
    Raises      ValueError for what is no notebook, OSError
    """
    content = learner.load(file)
    if learner.other_language(content):
        return content, ""
    content["metadata"] = {}  # the kernel is chosen here
    for number, cell in enumerate(content["cells"]):
        if isinstance(cell, dict):
            cell.setdefault("id", f"cell-{number}")  # without one nbformat complains
    try:
        copy = nbformat.reads(json.dumps(content), as_version=4)
    except Exception as error:  # of one of its many kinds: a cell without a source ...
        raise ValueError(f"it cannot be run: {type(error).__name__}: {error}") from None
    for cell in copy.cells:
        if cell.cell_type == "code":
            cell.outputs = []
    where = {"metadata": {"path": os.path.dirname(os.path.abspath(file))}}
    usual: dict[str, Any] = {"kernel_name": "python3", "allow_errors": True, "timeout": SECONDS}
    quiet = {"stderr": subprocess.DEVNULL}  # the kernel's own warnings, which are no output
    try:
        NotebookClient(copy, resources=where, record_timing=False, **usual).execute(**quiet)
    except CellTimeoutError:
        return copy, Message(LATE, SECONDS)
    except DeadKernelError:
        return copy, DIED
    return copy, ""
