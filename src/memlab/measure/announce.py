"""One line in a program, so that `memlab watch` can say what was alive when it stopped it.

    memlab.measure.announce()            at the start of a program: tensors that Python can reach
    memlab.measure.announce(tracker)     the storages of a Tracker, autograd's own included

Watched or not, the program runs as before; only when it is asked to end (SIGTERM), it first writes
its table into the folder that MEMLAB_WATCH names.
"""

import gc
import json
import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import torch

from ..watch.announced import FOLDER
from .recorded import Recorded
from .storages import plain

LARGEST = 12
RANKS = ("weights", "gradients", "optimizer", "other")


def announce(tracker: Recorded | None = None) -> bool:
    """Write down what is alive when SIGTERM comes, and then end as the program would have ended.

    tracker     a `Tracker` whose block is running: its categories are exact. Without one, tensors
                are found through Python: weights, gradients, optimizer state, and others
    Returns     whether anybody watches; if nobody does, nothing has been changed
    Leaves out  without a tracker: what only autograd keeps, most activations. With or without: a
                program that is inside one long kernel when it is asked, for Python hears a signal
                between two calls; and handlers of SIGTERM that are set after this one
    Raises      ValueError outside of the main thread, where Python cannot handle signals
    """
    folder = os.environ.get(FOLDER)
    if not folder:
        return False
    before: Any = signal.getsignal(signal.SIGTERM)
    if isinstance(before, _Asked):  # said again, with a tracker: this one counts
        before = before.then
    signal.signal(signal.SIGTERM, _Asked(Path(folder), tracker, before))
    return True


class _Asked:
    """The handler: write the table, then do what would have been done without it."""

    def __init__(self, folder: Path, tracker: Recorded | None, then: Any) -> None:
        self.folder, self.tracker, self.then = folder, tracker, then
        self.process = os.getpid()

    def __call__(self, number: int, frame: Any) -> None:
        try:
            # A fork of the program (a loader's worker) inherits this handler, and has no tensors
            # but those of its parent.
            if os.getpid() == self.process:
                _write(self.folder, alive(self.tracker))
        finally:
            if callable(self.then):
                self.then(number, frame)
            elif self.then is not signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)
                os.kill(os.getpid(), number)


def alive(tracker: Recorded | None = None) -> dict[str, Any]:
    """What is alive in this process now, as a table that JSON can hold.

    Shapes      {"pid", "found_by", "alive": {category: bytes},
                "largest": [[how many alike, bytes of each, category, what]],
                "allocator": {"allocated", "reserved"} of CUDA, or None}
    Unit        bytes; each storage once
    """
    if tracker is None:
        found = _found()
    else:
        found = [
            (size, record.category, _say(record.dtype, record.shape, record.device, record.op))
            for record, size in tracker.alive()
        ]
    totals: Counter[str] = Counter()
    for size, category, _ in found:
        totals[category] += size
    alike = sorted(Counter(found).items(), key=lambda pair: -pair[0][0] * pair[1])
    allocator = None
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        # Counters only: to wait for the device's work could take longer than the grace.
        allocator = {
            "allocated": torch.cuda.memory_allocated(),
            "reserved": torch.cuda.memory_reserved(),
        }
    return {
        "pid": os.getpid(),
        "found_by": "its tensors that Python reaches" if tracker is None else "its Tracker",
        "alive": dict(totals),
        "largest": [[count, *entry] for entry, count in alike[:LARGEST]],
        "allocator": allocator,
    }


def _found() -> list[tuple[int, str, str]]:
    """Every storage that Python can reach: bytes, category, and what it is."""
    things = [thing for thing in gc.get_objects() if _is_a(thing)]
    names: dict[int, int] = {}
    sizes: dict[int, tuple[int, str]] = {}

    def name(tensor: torch.Tensor, rank: int) -> None:
        try:
            for part in plain(tensor):
                storage = part.untyped_storage()
                if storage.device.type == "meta":  # fake ones too: a shape, and no memory
                    continue
                key = storage._cdata
                says = _say(part.dtype, part.shape, part.device, "")
                sizes.setdefault(key, (storage.nbytes(), says))
                names[key] = min(rank, names.get(key, rank))
        except (RuntimeError, NotImplementedError):  # one without a storage, or half torn down
            return

    for thing in things:
        if isinstance(thing, torch.optim.Optimizer):
            for state in list(thing.state.values()):
                for value in state.values() if isinstance(state, dict) else ():
                    if isinstance(value, torch.Tensor):
                        name(value, 2)
        else:
            name(thing, 0 if isinstance(thing, torch.nn.Parameter) else 3)
            gradient = thing.grad if thing.is_leaf else None
            if gradient is not None:
                name(gradient, 1)
    return [(size, RANKS[names[key]], what) for key, (size, what) in sizes.items()]


def _is_a(thing: Any) -> bool:
    """Whether it is a tensor or an optimizer: by its type, for some objects' isinstance answers."""
    return issubclass(type(thing), (torch.Tensor, torch.optim.Optimizer))


def _say(dtype: Any, shape: Any, device: Any, op: str) -> str:
    kind = str(dtype).removeprefix("torch.")
    made = f" by {op}" if op else ""
    return f"{kind} {list(shape)} on {device}{made}"


def _write(folder: Path, table: dict[str, Any]) -> None:
    """All at once: whoever reads finds a whole table or none."""
    fresh = folder / f"{table['pid']}.new"
    fresh.write_text(json.dumps(table), encoding="utf-8")
    os.replace(fresh, folder / f"{table['pid']}.json")
