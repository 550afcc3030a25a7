"""Run a program unmodified, on tensors without values, and say what its memory would be."""

import contextlib
import logging
import os
import runpy
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from typing import Any

import torch
import torch._dynamo  # asks about CUDA while it is imported, before a card is shown
from torch._subclasses import fake_tensor

from ..devices import Device
from ..measure.grouped_products import grouped_products
from ..measure.shapes_mode import shapes_mode
from . import card, files, guard, likely, methods, moving
from .answer import Rehearsal
from .assumed import Assumed
from .command import Program
from .hub import hub
from .imports import Missing, import_all, libraries
from .launches import launches
from .lines import Lines
from .ranks import group, variables
from .refused import Done, Refused
from .undo import Changes
from .values import Values
from .watched import Watched

LIMIT = 600  # seconds of processor time; the largest of ours took 26
CANNOT = (
    fake_tensor.DynamicOutputShapeException,
    fake_tensor.DataDependentOutputException,
    fake_tensor.UnsupportedOperatorException,
    fake_tensor.UnsupportedFakeTensorException,
)
assert likely.rule  # the rules of unknown and likely are registered by their modules
# Who remembers what machine this is.
ASKING = ("transformers", "accelerate", "peft", "trl", "diffusers", "lightning", "datasets")


def run(
    program: Program, on: Device, *, named: bool, steps: int, backend: str, policy: dict[str, str]
) -> Rehearsal:
    """Rehearse a program on a card.

    named       whether somebody said which card; else it only stands for one
    Raises      ValueError for what cannot be rehearsed
    """
    lines = Lines(program.folder)
    assumed = Assumed(lines, policy)
    tracker = Watched(backend, lines, steps)
    status, failure = 0, None
    with Changes() as changes:
        missing = Missing()
        sys.meta_path.insert(0, missing)  # type: ignore[arg-type]
        changes.callback(sys.meta_path.remove, missing)
        try:
            several = variables(program.ranks, program.local) if program.ranks else {}
            files.environment(changes, program.environment | several)
            changes.answers(ASKING)
            _as_the_program(changes, program)
            names = libraries(program.path)
            import_all(names)
            _check_path(missing, backend, {name.partition(".")[0] for name, _ in names})
            _change(changes, program, on, backend, tracker, assumed)
            shapes = shapes_mode()
            values = Values(shapes, assumed)
            methods.methods(changes, values, assumed)
            launches(changes, values, assumed)
            with contextlib.ExitStack() as stack:
                for mode in (grouped_products(), shapes, values, methods.Calls(assumed), tracker):
                    stack.enter_context(mode)
                stack.enter_context(torch.autograd.set_multithreading_enabled(False))
                stack.enter_context(_limited(lines))
                try:
                    _run(program)
                except Done:
                    pass
                except SystemExit as stopped:
                    status = _status(stopped.code)
                except CANNOT as error:
                    raise Refused(_unanswered(error, lines)) from error
                except Exception as error:
                    if not tracker.ended:  # else it fails at being stopped
                        status, failure = 1, _told(error)
            _check_path(missing, backend, lines.packages())
        except Refused as error:
            raise ValueError(str(error)) from error
        absent = missing.others()
    return Rehearsal(
        tracker,
        assumed,
        on,
        named=named,
        backend=backend,
        ranks=program.ranks or 1,
        missing=absent,
        status=status,
        failure=failure,
    )


def _change(
    changes: Changes,
    program: Program,
    on: Device,
    backend: str,
    tracker: Watched,
    assumed: Assumed,
) -> None:
    if backend == "cuda":
        guard.device_guard()
        guard.kernels(changes)
        card.show(changes, on, tracker, program.local)
        group(changes, program.ranks or 1)
        methods.numbered_modules(changes)
    else:
        card.hide(changes)
    moving.moving(changes)
    moving.optimizers(changes)
    files.loaders(changes)
    files.nothing_saved(changes, assumed)
    files.nothing_compiled(changes, assumed)
    hub(changes, backend)
    log = logging.getLogger("torch._subclasses.fake_tensor")  # says an error twice, in 20 lines
    changes.replace(log, "disabled", True)


def _as_the_program(changes: Changes, program: Program) -> None:
    """sys.argv, sys.path and the program's own modules as in a process of its own."""
    changes.replace(sys, "argv", [program.path, *program.arguments])
    changes.replace(sys, "path", [program.folder, *sys.path])
    before = set(sys.modules)

    def forget() -> None:
        inside = os.path.join(os.path.abspath(program.folder), "")
        for name in set(sys.modules) - before:
            file = getattr(sys.modules[name], "__file__", None) or ""
            if file.startswith(inside) and "site-packages" not in file:
                del sys.modules[name]

    changes.callback(forget)


def _run(program: Program) -> None:
    if program.module:
        runpy.run_module(program.module, run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(program.path, run_name="__main__")


def _check_path(missing: Missing, backend: str, used: set[str]) -> None:
    """Refuse what would go another way here than on the machine with the card."""
    for package, library in missing.decisive(used) if backend == "cuda" else ():
        raise Refused(
            f"{library} takes another path without {package}, which is not installed here, and "
            f"holds other bytes: pip install {package}"
        )


@contextlib.contextmanager
def _limited(lines: Lines) -> Iterator[None]:
    """Stop a program that finds no end without values, and say where it is."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(
        signal, "setitimer"
    ):
        yield
        return

    def late(_: int, frame: Any) -> None:
        where = lines.of(frame)
        raise Refused(
            f"no end after {LIMIT} seconds of processor time, at {where.reader.where} "
            f"{where.reader.code} ({where.library.where})"
        )

    before = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, LIMIT)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _status(code: Any) -> int:
    if code is None or isinstance(code, int):
        return code or 0
    print(code, file=sys.stderr)
    return 1


def _unanswered(error: BaseException, lines: Lines) -> str:
    """The operator that has no shapes without values, and the line that called it."""
    frame = error.__traceback__
    last = None
    while frame is not None:
        last, frame = frame.tb_frame, frame.tb_next
    where = lines.of(last)
    what = str(error).strip().splitlines()[:1] or [""]
    return (
        f"{where.reader.where} {where.reader.code}: {what[0]} has no shape without values "
        f"({where.library.where})"
    )


def _told(error: BaseException) -> str:
    """A traceback as Python prints it, from the program's own first line on."""
    frames = traceback.extract_tb(error.__traceback__)
    first = next((i for i, f in enumerate(frames) if "runpy" in f.filename), -1)
    own = [f for f in frames[first + 1 :] if "runpy" not in f.filename]
    head = ["Traceback (most recent call last):\n", *traceback.format_list(own)]
    return "".join([*head, *traceback.format_exception_only(error)]).rstrip()
