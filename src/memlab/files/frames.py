"""Which line of a program a record of frames belongs to: the innermost that its author wrote.

PyTorch records C++ frames first (stacks="all", its default), by bare names such as
memory_snapshot.cpp, then those of Python, its own and other libraries' among them. Where no line of
Python stands, as in autograd's thread, the symbols of C++ say which operator it was.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Sequence

    Frame = tuple[str, int | str, str]  # file, line, name

NOWHERE = "no frames recorded"
# Of Python: a file of it, or a notebook's cell.
PYTHON = re.compile(r"\.pyw?$|^<(?:ipython-input|stdin|cell)")
# Written by others: what is installed, the standard library, PyTorch built in its own folder.
LIBRARIES = re.compile(
    r"/(?:site|dist)-packages/|/lib(?:64)?/python\d|/python\d*/lib/|/torch/|^<frozen", re.IGNORECASE
)
# What allocates without a line of Python, by a symbol of it, innermost first.
NCCL, CUBLAS, CUDNN = re.compile("nccl", re.I), re.compile("cublas|blashandle", re.I), "cudnn"
NODE = re.compile(r"autograd::(?:generated::)?(\w{1,80}Backward\w{0,40})")
ENGINE = "autograd::Engine"
OPERATOR = re.compile(r"(?:at::_ops::|at::native::|wrapper_[A-Z][A-Za-z]{0,40}__)(\w{1,80})")
EMPTY = "empty"  # what operators call to allocate
SYMBOL = 300  # characters of a symbol that are looked at
LONGEST = 160  # characters of an answer


def line_of(frames: Sequence[Frame]) -> str:
    """The line of these frames, innermost first, as "train.py:12 name".

    Order       the innermost outside libraries; else the operator, where none is of Python; else
                the innermost of Python
    """
    python = [frame for frame in frames if PYTHON.search(_path(frame))]
    own = [frame for frame in python if not LIBRARIES.search(_path(frame))]
    if own or python:
        words = _told((own or python)[0])
    else:
        words = _operator([name[:SYMBOL] for _, _, name in frames])
        words = words or (_told(frames[0]) if frames else NOWHERE)
    return "".join(c if c.isprintable() else "?" for c in words)[:LONGEST]


def _operator(symbols: list[str]) -> str:
    """Who allocated, by C++: NCCL, cuBLAS, a node of the backward pass, or another operator."""
    for symbol in symbols:
        if NCCL.search(symbol):
            return "NCCL"
        if CUBLAS.search(symbol):
            return "a workspace of cuBLAS"
        if CUDNN in symbol.lower():
            return "a workspace of cuDNN"
    for symbol in symbols:
        if node := NODE.search(symbol):
            return f"backward: {node[1]}"
    if any(ENGINE in symbol for symbol in symbols):
        return "backward"
    found = [at[1].strip("_") for at in map(OPERATOR.search, symbols) if at]
    named = [name for name in found if not name.startswith(EMPTY)] or found
    return f"operator {named[0]}" if named else ""


def _path(frame: Frame) -> str:
    return frame[0].replace("\\", "/")


def _told(frame: Frame) -> str:
    return f"{_path(frame).rpartition('/')[2]}:{frame[1]} {frame[2]}"
