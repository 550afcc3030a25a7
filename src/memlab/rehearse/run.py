"""Run a program unmodified, on tensors without values, and say what its memory would be."""

import contextlib
import logging
import os
import runpy
import sys

import torch
import torch._dynamo  # asks about CUDA while it is imported, before a card is shown

from ..devices import Device
from ..measure.grouped_products import grouped_products
from ..measure.shapes_mode import shapes_mode
from . import card, files, guard, kernels, likely, methods, moving
from .answer import Rehearsal
from .assumed import Assumed
from .command import Program
from .ending import CANNOT, check_streams, exit_status, limited, told, unanswered
from .hub import hub
from .imports import Missing, import_all, libraries
from .launches import launches
from .lines import Lines
from .losses import losses
from .ranks import group, variables
from .refused import Done, Refused
from .undo import Changes
from .values import Values
from .watched import Watched

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
    tracker.kernels |= losses()
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
            values = Values(shapes, assumed, likely.ALL)
            methods.methods(changes, values, assumed)
            launches(changes, values, assumed)
            with contextlib.ExitStack() as stack:
                for mode in (grouped_products(), shapes, values, methods.Calls(assumed), tracker):
                    stack.enter_context(mode)
                stack.enter_context(torch.autograd.set_multithreading_enabled(False))
                stack.enter_context(limited(lines))
                try:
                    _run(program)
                except Done:
                    pass
                except SystemExit as stopped:
                    status = exit_status(stopped.code)
                except CANNOT as error:
                    raise Refused(unanswered(error, lines)) from error
                except Exception as error:
                    if not tracker.ended:  # else it fails at being stopped
                        check_streams(error, lines)
                        status, failure = 1, told(error)
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
        kernels.tensors(changes)
        tracker.kernels |= kernels.kernels()
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
