"""A tracker that knows lines: the line that made each storage, and what a step leaves."""

import linecache
import sys
import sysconfig
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple
from weakref import WeakSet

import torch
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.optim.optimizer import register_optimizer_step_post_hook

from .collected import collected
from .tracker import FOUND, Tracker

OWN = str(Path(__file__).resolve().parent.parent)
TORCH = str(Path(torch.__file__).resolve().parent)
STDLIB = sysconfig.get_path("stdlib")
# Code that runs on behalf of somebody else's line. memlab's models are somebody else's too.
LIBRARIES = (OWN, TORCH, STDLIB, *(sysconfig.get_path(name) for name in ("purelib", "platlib")))
PASSED = ("<", *LIBRARIES)  # and what stands in no file
DEEPEST = 200  # frames to look at; a recursion needs no more
LOOKED = 2  # steps after which all modules are looked through; a third would find nothing new
ENOUGH_STEPS = 3  # the first makes the optimizer's states; two more tell a trend


class Line(NamedTuple):
    """A line of a program: where it stands, and its text."""

    where: str
    code: str


OUTSIDE = Line("outside the program:0", "")


class Held(NamedTuple):
    """Bytes of one category that one line made, in so many tensors."""

    bytes: int
    tensors: int
    category: str
    where: str
    code: str


class LineTracker(Tracker):
    """A Tracker that also writes down which line of the program each storage came from.

    Line        the innermost one outside PyTorch, memlab, Python's own library and whatever is
                installed in site-packages: the line that its author can change
    Labels      modules from their first call on, optimizers from their first step on, whole
                numbers that go into a module as inputs
    steps       the number of the last event of each optimizer step
    """

    def __init__(self, device: str | torch.device | None = None) -> None:
        super().__init__(device)
        self.lines: dict[int, Line] = {}
        self.steps: list[int] = []
        self._named: WeakSet[Any] = WeakSet()
        self._hooks = ExitStack()
        self._thread = threading.get_ident()

    def __enter__(self) -> "LineTracker":
        super().__enter__()
        self._thread = threading.get_ident()
        hooks = (
            register_module_forward_pre_hook(self._called),
            register_optimizer_step_post_hook(self._stepped),
        )
        for hook in hooks:
            self._hooks.callback(hook.remove)
        return self

    def __exit__(self, *error: Any) -> None:
        self._hooks.close()
        super().__exit__(*error)

    def _meet(self, thing: Any, kind: str, func: Any) -> None:
        known = len(self.records)
        super()._meet(thing, kind, func)
        if len(self.records) > known:
            line = self._line(sys._getframe(1))
            for ident in range(known, len(self.records)):
                self.lines[ident] = line

    def _line(self, frame: FrameType) -> Line:
        """The program's line; backward on a GPU runs in a thread of autograd's own, while the
        program waits in the line that called it."""
        found = _line(frame)
        if found == OUTSIDE and threading.get_ident() != self._thread:
            found = _line(sys._current_frames().get(self._thread))
        return found

    def _called(self, module: torch.nn.Module, arguments: tuple[Any, ...]) -> None:
        if module not in self._named:
            self.label(module)
            self._named.update(module.modules())
        for given in arguments:
            if isinstance(given, torch.Tensor) and not given.dtype.is_floating_point:
                self._name(given, "inputs", FOUND)

    def _stepped(self, optimizer: Any, *_: Any) -> None:
        if optimizer not in self._named:
            self.label(optimizer)
            self._named.add(optimizer)
        self.steps.append(len(self.timeline) - 1)
        if len(self.steps) <= LOOKED:
            self._uncalled()

    def _uncalled(self) -> None:
        """Name the weights of modules that are only held: averages, a reference."""
        for each in collected(lambda kind: issubclass(kind, torch.nn.Module)):
            if each not in self._named:
                for parameter in each.parameters(recurse=False):
                    self._known(parameter, "weights")
                for buffer in each.buffers(recurse=False):
                    self._known(buffer, "buffers")

    def _known(self, tensor: torch.Tensor, category: str) -> None:
        """Name a storage that came up already; what was made before the block stays there."""
        if tensor.layout == torch.strided and self.knows(tensor.untyped_storage()):
            self._name(tensor, category, FOUND)

    def held(self, at: int | str | None = "peak") -> list[Held]:
        """What is alive then, by category and line, most bytes first.

        at      an event's number, "peak", or None for the end of the block
        """
        found: dict[tuple[str, Line], list[int]] = {}
        for record, size in self.alive(at):
            pair = found.setdefault((record.category, self.lines[record.ident]), [0, 0])
            pair[0] += size
            pair[1] += 1
        rows = [
            Held(size, count, category, line.where, line.code)
            for (category, line), (size, count) in found.items()
        ]
        return sorted(rows, key=lambda row: (-row.bytes, row.where))

    def growth(self) -> list[Held]:
        """What one optimizer step leaves behind for good, by category and line.

        Formula     (held after the last step − held after the second) / the steps between: the
                    first one makes the optimizer's states, which then stay
        Unit        bytes and tensors of one step; a list that is empty says that nothing grows
        Raises      ValueError for fewer than three steps
        """
        if len(self.steps) < ENOUGH_STEPS:
            raise ValueError(f"{len(self.steps)} optimizer steps were seen; three tell a trend")
        first, last = self.steps[1], self.steps[-1]
        count = len(self.steps) - 2
        before = {row[2:]: row for row in self.held(first)}
        rows = []
        for row in self.held(last):
            old = before.get(row[2:])
            more = row.bytes - (old.bytes if old else 0)
            if more >= count:
                tensors = (row.tensors - (old.tensors if old else 0)) // count
                rows.append(row._replace(bytes=more // count, tensors=tensors))
        return sorted(rows, key=lambda row: (-row.bytes, row.where))


def _line(frame: FrameType | None) -> Line:
    """The innermost line that is not a library's."""
    for each, _ in zip(_frames(frame), range(DEEPEST), strict=False):
        file = each.f_code.co_filename
        if not file.startswith(PASSED):
            code = linecache.getline(file, each.f_lineno).strip()
            short = "notebook" if "ipykernel" in file else Path(file).name
            return Line(f"{short}:{each.f_lineno}", code)
    return OUTSIDE


def _frames(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back
