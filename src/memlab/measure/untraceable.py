"""Say which operation cannot run without values, and where it is written."""

import linecache
import os
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    UnsupportedOperatorException,
)

from .fake_cuda.refused import Refused

_OURS = tuple(
    os.path.join(os.path.dirname(os.path.abspath(p)), "") for p in (torch.__file__, __file__)
)
_PYTHON = os.path.dirname(os.path.abspath(os.__file__)) + os.sep + "contextlib.py"
_READABLE = tuple(_OURS[0] + part + os.sep for part in ("optim", "nn"))

_DEVICE = (
    'it asks for a CUDA device, and backend="cpu" has none: take the device of an input instead'
)
_TWO = (
    'with backend="cuda" the module and its inputs are on cuda:0, and this meets a tensor on the '
    "CPU, as it would on a GPU: make it on the device of an input instead"
)
# What torch says where no exception of its own names the case.
_SAID = {
    "no fake impl registered": "this custom operation has no meta kernel (register_fake adds one)",
    "Cannot access data pointer": "it reads memory, and a trace has shapes without values",
    "not linked with support for cuda": _DEVICE,
    "Torch not compiled with CUDA enabled": _DEVICE,
    "to be on the same device, but found at least two devices": _TWO,
    "found two different devices": _TWO,
}
_READS = {"aten._local_scalar_dense.default": "item(), bool(), int(), float(), tolist() or if"}


class CannotTrace(RuntimeError):
    """A step needs the values of tensors, or an operator that has no shapes without values.

    operation   its name, such as "aten.nonzero.default"
    line        "file.py:12, in forward: mask = x[x > 0]": the last line outside torch
    """

    def __init__(self, operation: str, line: str, why: str) -> None:
        super().__init__(f"cannot trace {operation} at {line}\n{why}")
        self.operation = operation
        self.line = line


@contextmanager
def explained() -> Iterator[None]:
    """Turn what fake tensors raise into CannotTrace; other errors pass as they are.

    Raises      ValueError where no card can stand in for one
    """
    try:
        yield
    except Refused as error:
        raise ValueError(str(error)) from error
    except (
        DataDependentOutputException,
        DynamicOutputShapeException,
        UnsupportedOperatorException,
    ) as error:
        operation = str(error.func)
        raise CannotTrace(operation, _line(error), _why(error, operation)) from error
    except (RuntimeError, AssertionError) as error:
        for words, why in _SAID.items():
            if words in str(error):
                line = _line(error)
                raise CannotTrace(_called(error, line), line, why) from error
        raise


def _why(error: Exception, operation: str) -> str:
    if isinstance(error, DataDependentOutputException):
        reads = f" ({_READS[operation]})" if operation in _READS else ""
        return f"it reads a value{reads}, and a trace has shapes without values"
    if isinstance(error, DynamicOutputShapeException):
        return "the shape of its result depends on values, and a trace has shapes without values"
    return "this operator has no meta kernel: nothing tells the shape of its result"


def _frames(error: BaseException) -> list[traceback.FrameSummary]:
    """The user's frames; where there are none, those of torch's optimizers, modules and losses."""
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [f for f in frames if not os.path.abspath(f.filename).startswith((*_OURS, _PYTHON))]
    return theirs or [f for f in frames if os.path.abspath(f.filename).startswith(_READABLE)]


def _line(error: BaseException) -> str:
    frames = _frames(error)
    if not frames:
        return "an unknown line"
    frame = frames[-1]
    words = linecache.getline(frame.filename, frame.lineno or 0).strip()
    return f"{frame.filename}:{frame.lineno}, in {frame.name}: {words}"


def _called(error: BaseException, line: str) -> str:
    """The name of a custom operation from torch's sentence, else the expression on the line."""
    _, found, rest = str(error).partition("<CustomOpDef(")
    return rest.partition(")")[0] if found else line.rpartition(": ")[2]
