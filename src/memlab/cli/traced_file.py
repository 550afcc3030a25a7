"""Trace what a function of somebody's file returns."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from traceback import extract_tb
from typing import Any

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

from ..measure import CannotTrace, trace
from ..measure.fake_cuda.guard import device_guard
from ..measure.fake_cuda.moving import moving
from ..measure.fake_cuda.undo import Changes
from ..measure.untraceable import explained
from ..run import Run


def trace_file(
    path: str, function: str, how: Run, *, autocast: str | None, title: str
) -> tuple[Any, int]:
    """The trace, and the number of the module's parameters.

    The function runs as it would in a program, with every tensor that it makes on the backend's
    device and without values: nothing it builds takes memory, and inputs made anywhere in it fit
    the module.
    Raises      ValueError for a file or function that is not there, returns something else, or
                raises: with the line of the file
    """
    there = torch.device("cpu" if how.compile else how.backend)
    if there.type == "cuda":
        with explained():
            device_guard()
    with FakeTensorMode(allow_non_fake_inputs=True):
        with _told(path), Changes() as changes, there:
            moving(changes)
            module, inputs, loss = _returned(path, function)
        if callable(inputs):
            inputs = _on(there, inputs)
        parameters = sum(parameter.numel() for parameter in module.parameters())
        try:
            with _told(path):
                step = trace(module, inputs, how, loss=loss, autocast=autocast, title=title)
        except TypeError as error:
            if "give loss=" not in str(error):
                raise
            if callable(inputs):
                raise ValueError(f"{function}(): {str(error).partition(';')[0]}") from error
            raise ValueError(
                f"{function}() gave a module whose output is no loss; let it return a third value, "
                "a function of the output that gives the loss"
            ) from error
    return step, parameters


def _on(device: torch.device, step: Any) -> Any:
    """A step whose tensors are made on a device."""

    def called(module: nn.Module) -> Any:
        with device:
            return step(module)

    return called


@contextmanager
def _told(path: str) -> Iterator[None]:
    """What the file's own code raises, as one line with the place in the file where it happened.

    Raises      ValueError in the place of the file's own error; memlab's words stay as they are
    """
    log = logging.getLogger("torch._subclasses.fake_tensor")  # says an error twice, in 20 lines
    before, log.disabled = log.disabled, True
    try:
        yield
    except (CannotTrace, AssertionError):
        raise
    except SyntaxError as error:
        raise ValueError(f"{path}:{error.lineno}: SyntaxError: {error.msg}") from error
    except Exception as error:
        whole = os.path.abspath(path)
        ours = [f for f in extract_tb(error.__traceback__) if os.path.abspath(f.filename) == whole]
        if not ours:
            raise
        words = str(error).strip().splitlines() or [""]
        said = f"{path}:{ours[-1].lineno}, in {ours[-1].name}: {type(error).__name__}: {words[0]}"
        if "cuda" in words[0].lower():
            said += "; make it on the CPU: nothing is computed, and --backend says whose kernels"
        raise ValueError(said) from error
    finally:
        log.disabled = before


def _returned(path: str, function: str) -> tuple[nn.Module, Any, Any]:
    import importlib.util

    if not os.path.isfile(path):
        raise ValueError(f"no file {path!r}")
    spec = importlib.util.spec_from_file_location("memlab_traced", path)
    assert spec is not None and spec.loader is not None
    code = importlib.util.module_from_spec(spec)
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))  # as python FILE.py would
    try:
        spec.loader.exec_module(code)
        made = getattr(code, function, None)
        if not callable(made):
            raise ValueError(f"{path!r} has no function {function!r}")
        result = made()
    finally:
        sys.path.pop(0)
    right = isinstance(result, tuple) and len(result) in (2, 3)
    if not right or not isinstance(result[0], nn.Module):
        raise ValueError(
            f"{function}() returned a {type(result).__name__}; a torch.nn.Module and its inputs, "
            "or a module and a function of it, are needed"
        )
    return result[0], result[1], result[2] if len(result) == 3 else None
