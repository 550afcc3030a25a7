"""How a rehearsal ends, where it does not by its last step: too late, unanswered, failed."""

import contextlib
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from typing import Any

from torch._subclasses import fake_tensor

from ..measure.fake_cuda.lines import Lines
from ..measure.fake_cuda.refused import Refused

LIMIT = 600  # seconds of processor time; the largest of ours took 26
CANNOT = (
    fake_tensor.DynamicOutputShapeException,
    fake_tensor.DataDependentOutputException,
    fake_tensor.UnsupportedOperatorException,
    fake_tensor.UnsupportedFakeTensorException,
)


@contextlib.contextmanager
def limited(lines: Lines) -> Iterator[None]:
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


def exit_status(code: Any) -> int:
    if code is None or isinstance(code, int):
        return code or 0
    print(code, file=sys.stderr)
    return 1


def unanswered(error: BaseException, lines: Lines) -> str:
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


def check_streams(error: BaseException, lines: Lines) -> None:
    """Refuse what autograd asks for the stream of a card, such as a gradient of a DTensor.

    Source      PyTorch 2.13: aten/src/ATen/DeviceAccelerator.cpp, getAccelerator
    """
    if "Cannot access accelerator device" not in str(error):
        return
    frames = traceback.walk_tb(error.__traceback__)
    where = next((lines.of(frame) for frame, _ in reversed(list(frames))), None)
    place = "" if where is None else f"{where.reader.where} {where.reader.code}: "
    raise Refused(
        f"{place}autograd asks for the stream of a card, as it does where matrices are divided by "
        "DTensor (tensor parallel); that is not rehearsed yet"
    )


def told(error: BaseException) -> str:
    """A traceback as Python prints it, from the program's own first line on."""
    frames = traceback.extract_tb(error.__traceback__)
    first = next((i for i, f in enumerate(frames) if "runpy" in f.filename), -1)
    own = [f for f in frames[first + 1 :] if "runpy" not in f.filename]
    head = ["Traceback (most recent call last):\n", *traceback.format_list(own)]
    return "".join([*head, *traceback.format_exception_only(error)]).rstrip()
