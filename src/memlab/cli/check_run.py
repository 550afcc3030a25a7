"""`memlab check --run`: a copy of a notebook, executed by this Python's own kernel."""

from __future__ import annotations

import atexit
import os
import subprocess

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellTimeoutError, DeadKernelError

from ..base.message import Localized, Message
from ..files import learner
from .learners import DIED, LATE, NOT_STARTED

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
    cells = [
        nbformat.v4.new_code_cell(source, metadata={"tags": tags})
        for source, tags in learner.code(content)
    ]
    copy = nbformat.v4.new_notebook(cells=cells)
    where = {"metadata": {"path": os.path.dirname(os.path.abspath(file))}}
    usual: dict[str, Any] = {"kernel_name": "python3", "allow_errors": True}
    usual |= {"timeout": SECONDS, "startup_timeout": SECONDS}
    quiet = {"stderr": subprocess.DEVNULL}  # the kernel's own warnings, which are no output
    client = NotebookClient(copy, resources=where, record_timing=False, **usual)
    try:
        client.execute(**quiet)
    except CellTimeoutError:
        return copy, Message(LATE, SECONDS)
    except DeadKernelError:
        return copy, DIED
    except (RuntimeError, LookupError, OSError) as error:  # no kernel, or none that starts
        # nbclient would end this kernel once more when Python ends, and fail.
        atexit.unregister(client._cleanup_kernel)
        return copy, Message(NOT_STARTED, Localized(f"{type(error).__name__}: {error}"))
    return copy, ""
