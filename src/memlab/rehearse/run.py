"""Run a program unmodified, on tensors without values, and say what its memory would be."""

import contextlib
import logging
import os
import runpy
import sys
from dataclasses import replace

from ..measure.fake_cuda import hide, known, moving, show
from ..measure.fake_cuda.assumed import Assumed
from ..measure.fake_cuda.lines import Lines
from ..measure.fake_cuda.losses import losses
from ..measure.fake_cuda.refused import Done, Refused
from ..measure.fake_cuda.undo import Changes
from ..measure.shapes_mode import shapes_mode
from . import files, kernels
from .answer import Rehearsal
from .asked import Asked
from .command import Program
from .dataloaders import LoaderPatches
from .deepspeed import VARIABLES, deepspeed
from .dtensors import divided, kinds, wraps
from .ending import CANNOT, check_streams, exit_status, limited, told, unanswered
from .flash import flash
from .hub import hub
from .imports import Missing, import_all, libraries
from .launches import launches
from .quantized import states
from .ranks import PendingCollectives, group, variables
from .stages import stages
from .watched import Watched

# Who remembers what machine this is.
ASKING = ("transformers", "accelerate", "peft", "trl", "diffusers", "lightning", "datasets")


def run_ranks(asked: Asked, ranks: list[int]) -> Rehearsal:
    """Rehearse some ranks of a program; the answer is the fullest one's, the rest its `others`.

    Of one process on several cards, each card in the place of a rank: what it holds is counted.

    Raises      ValueError for what cannot be rehearsed
    """
    todo = [replace(asked, rank=rank) for rank in ranks]
    found: list[Rehearsal] = []
    while todo:
        with files.quiet() if found else contextlib.nullcontext():
            found.append(run(todo.pop(0)))
        if found[-1].status:
            break
        if len(found) == 1:
            todo += [replace(asked, number=card) for card in sorted(found[0].tracker.cards)]
    full = max(found, key=lambda each: (bool(each.status), each.peak, -each.place))
    full.others = [each for each in found if each is not full]
    return full


def run(asked: Asked) -> Rehearsal:
    """Rehearse a program.

    Raises      ValueError for what cannot be rehearsed
    """
    program, backend = asked.program, asked.backend
    lines = Lines(program.folder)
    assumed = Assumed(lines, asked.policy)
    tracker = Watched(asked.counted, lines, asked.steps)
    tracker.outside = program.function is not None
    tracker.kernels |= losses()
    tracker.observer = asked.observer
    status, failure = 0, None
    with Changes() as changes:
        missing = Missing()
        sys.meta_path.insert(0, missing)  # type: ignore[arg-type]
        changes.callback(sys.meta_path.remove, missing)
        try:
            own = VARIABLES if asked.backend == "cuda" else {}
            files.environment(changes, own | program.environment | variables(asked))
            changes.answers(ASKING)
            if program.function is None:
                _as_the_program(changes, asked)
            names = libraries(program)
            import_all(names)
            _check_path(missing, backend, {name.partition(".")[0] for name, _ in names})
            loads = _change(changes, asked, tracker, assumed)
            shapes = shapes_mode()
            if asked.change is not None:
                asked.change(changes)
            if asked.observer is not None:
                asked.observer.enter(changes)
            with Changes() as inside:
                inside.enter_context(shapes)
                launches(inside, known(inside, shapes, assumed, asked.local), assumed)
                inside.enter_context(tracker)
                inside.enter_context(limited(lines))
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
            if asked.longest and not loads.batches and not status:
                raise Refused("longest: this program loads no batch with a DataLoader of PyTorch")
        except Refused as error:
            raise ValueError(str(error)) from error
        absent = missing.others()
    return Rehearsal(
        *(asked, tracker, assumed, loads, run), missing=absent, status=status, failure=failure
    )


def _change(changes: Changes, asked: Asked, tracker: Watched, assumed: Assumed) -> LoaderPatches:
    if asked.backend == "cuda":
        here = max(asked.program.local, asked.program.cards)
        show(changes, asked.card, tracker, count=here, number=asked.local)
        group(changes, asked.program.ranks or 1, asked.rank)
        divided(changes)
        stages(changes, asked.sent)
        tracker.divided = kinds()
        tracker.flight = PendingCollectives()
        tracker.kernels |= wraps()
        kernels.tensors(changes)
        tracker.kernels |= kernels.kernels()
    else:
        hide(changes)
    moving.moving(changes, tracker.made_before)
    loads = LoaderPatches(asked.longest, assumed)
    loads.change(changes)
    files.nothing_saved(changes, assumed)
    files.nothing_compiled(changes, assumed)
    hub(changes, asked.backend, asked.program.cards)
    if asked.backend == "cuda":
        flash(changes, assumed)
        states(changes)
        deepspeed(changes, assumed)
    log = logging.getLogger("torch._subclasses.fake_tensor")  # says an error twice, in 20 lines
    changes.replace(log, "disabled", True)
    return loads


def _as_the_program(changes: Changes, asked: Asked) -> None:
    """sys.argv, sys.path and the program's own modules as in a process of its own."""
    program = asked.program
    number = [f"--local_rank={asked.local}"] if program.numbered else []
    changes.replace(sys, "argv", [program.path, *number, *program.arguments])
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
    if program.function is not None:
        program.function(*program.arguments)
    elif program.module:
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
