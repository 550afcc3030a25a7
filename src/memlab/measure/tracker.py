"""Every storage of a run, to the byte: when it was born, what it was for, when it was freed.

A dispatch mode sees the result of every operator; a weak reference to each storage tells when it
goes. Works for tensors on any device, the meta device and fake tensors too, where a step that
would need terabytes takes a second and no memory.
Long, because one class answers every way in which PyTorch makes, shares and frees a storage.
"""

import itertools
import weakref
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch._guards import active_fake_mode
from torch.utils._python_dispatch import TorchDispatchMode

from .log import Record
from .patches import watch_resizes, watch_saves
from .recorded import CATEGORIES, Recorded
from .storages import PerStorage, Storage, is_plain, plain, tensors

# How sure a category is. A later finding replaces an earlier one unless that one was surer.
UNKNOWN, SAVED, FOUND, SAID = range(4)
FAKE = torch._C._TorchDispatchModeKey.FAKE  # the place of a FakeTensorMode among the modes


class Tracker(Recorded, TorchDispatchMode):
    """Counts every storage while its `with` block runs: current, peak, timeline, contents.

    Unit        bytes as asked for; `round_to=512` rounds each storage up as the CUDA allocator does
    Category    what a storage turned out to be, its whole life long: what `label` said, else
                gradients and optimizer state of labelled modules and optimizers, else activations
                (autograd kept it for backward), else other
    Existing    a storage from before the block counts from the moment it is labelled or first used
                as an argument, as a "seen" event: label model, optimizer and inputs first
    Fake        enter FakeTensorMode first; one entered inside is taken for a dry run of shapes
    Leaves out  scratch memory inside one kernel, numbers that autograd wraps (8 bytes each), and
                everything after the block: counting stops there
    Changes     compiled functions run eagerly inside the block (no dispatch mode goes with
                torch.compile), and each of their intermediate results then counts as memory;
                gradients that meet at one tensor are added out of place (autograd does so under
                any dispatch mode): one buffer more for a moment, seen if it falls on the peak
    Raises      RuntimeError when entered twice; ValueError for a device torch does not know
    """

    supports_higher_order_operators = True

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Torch would wrap each call to keep Dynamo out, which the block's stance does already."""
        return False

    def __init__(self, device: str | torch.device | None = None, *, round_to: int = 1) -> None:
        TorchDispatchMode.__init__(self)
        Recorded.__init__(self)
        if isinstance(round_to, bool) or not isinstance(round_to, int) or round_to < 1:
            raise ValueError(f"round_to={round_to!r} is not a whole number of bytes above zero")
        try:
            self._device = None if device is None else torch.device(device)
        except RuntimeError as error:
            raise ValueError(f"device={device!r} is not a device torch knows") from error
        self._round_to = round_to
        self._living: PerStorage[Record] = PerStorage(self._freed)
        self._idents = itertools.count()
        self._phase = ""
        self._watched: list[tuple[weakref.ref, str]] = []
        self._open: ExitStack | None = None
        self._done = False
        self._fake_mode: Any = None

    def label(self, thing: Any, category: str | None = None) -> Any:
        """Say what the storages of `thing` are for, in the past too; returns `thing`.

        Module      parameters are weights (or `category`), buffers are buffers, and gradients are
                    found as they come, to the end of the block
        Optimizer   its state is optimizer (or `category`), looked at again after every step
        Others      a tensor, or a dict, list or tuple of any of these; `category` is needed
        Raises      TypeError for a tensor without a category or for something without tensors
        """
        if category is not None and (not isinstance(category, str) or not category):
            raise TypeError(f"category={category!r} is not a name such as {', '.join(CATEGORIES)}")
        if isinstance(thing, (torch.nn.Module, torch.optim.Optimizer)):
            watch = (weakref.ref(thing), category or _default(thing))
            self._look(*watch)
            self._watched.append(watch)
            if self._open is not None:
                self._hook(*watch)
        elif isinstance(thing, dict):
            for value in thing.values():
                self.label(value, category)
        elif isinstance(thing, (list, tuple)):
            for value in thing:
                self.label(value, category)
        elif not isinstance(thing, torch.Tensor):
            raise TypeError(
                f"{thing!r} is a {type(thing).__name__}; a tensor, module, optimizer or a dict, "
                "list or tuple of them can be labelled"
            )
        elif category is None:
            raise TypeError(f"a tensor needs a category, such as {', '.join(CATEGORIES)}")
        else:
            self._name(thing, category, SAID)
        return thing

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Write `name` (forward, backward, step ...) into the events of this `with` block."""
        before, self._phase = self._phase, name
        try:
            yield
        finally:
            self._phase = before

    def __enter__(self) -> "Tracker":
        if self._open is not None or self._done:
            state = "has recorded its block" if self._done else "is already recording"
            raise RuntimeError(f"this Tracker {state}; make a new one for each `with` block")
        with ExitStack() as stack:
            stack.enter_context(torch.compiler.set_stance("force_eager"))
            stack.enter_context(watch_resizes(self._resized))
            stack.enter_context(watch_saves(lambda t: self._name(t, "activations", SAVED)))
            self._fake_mode = active_fake_mode()
            super().__enter__()
            stack.push(super().__exit__)
            self._open = stack.pop_all()
        for watch in self._watched:
            self._hook(*watch)
        return self

    def __exit__(self, *error: Any) -> None:
        stack, self._open, self._done = self._open, None, True
        self._log.settle()
        if stack is not None:
            stack.__exit__(*error)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        for held in types:
            if hasattr(held, "__tensor_flatten__"):
                return NotImplemented  # let the subclass unwrap: its inner operators come by here
        kwargs = kwargs or {}
        if torch._C._get_dispatch_mode(FAKE) is not self._fake_mode:
            return func(*args, **kwargs)  # shapes being worked out (DTensor), not memory
        # torch.tensor(...) makes its storage out of sight and lifts it at once: it is new. Among
        # fake tensors the result is the one that counts.
        lifts = func is torch.ops.aten.lift_fresh.default
        for given in () if lifts and self._fake_mode is not None else _arguments(args):
            self._meet(given, "alloc" if lifts else "seen", func)
        if kwargs:
            for given in _arguments(kwargs):
                self._meet(given, "seen", func)
        result = func(*args, **kwargs)
        if isinstance(result, torch.Tensor):
            self._meet(result, "alloc", func)
        elif result is not None:
            for made in tensors(result):
                self._meet(made, "alloc", func)
        return result

    def _meet(self, thing: torch.Tensor | Storage, kind: str, func: Any) -> None:
        """Write down storages not known yet, and known ones that have another size now."""
        single = isinstance(thing, Storage) or is_plain(thing)
        for part in (thing,) if single else plain(thing):  # type: ignore[arg-type]
            storage = part if isinstance(part, Storage) else part.untyped_storage()
            record = self._living.get(storage)
            size = storage.nbytes()
            if self._round_to > 1:
                size = -(-size // self._round_to) * self._round_to
            if record is not None:
                if size != record.bytes and not self._done:
                    record.bytes = size
                    self._log.note("resize", record.ident, size, str(func), self._phase)
            elif self._counts(device := _device(part)):
                tensor = part if isinstance(part, torch.Tensor) else None
                record = Record(
                    next(self._idents),
                    "other",
                    UNKNOWN,
                    size,
                    str(device),
                    "" if tensor is None else str(tensor.dtype).removeprefix("torch."),
                    () if tensor is None else tuple(tensor.shape),
                    str(func),
                )
                self.records[record.ident] = record
                self._living.add(storage, record)
                self._log.note(kind, record.ident, size, record.op, self._phase)

    def knows(self, storage: Storage) -> bool:
        """Whether a storage came up in the block."""
        return self._living.get(storage) is not None

    def _counts(self, device: torch.device) -> bool:
        return not self._done and self.device_counts(device)

    def device_counts(self, device: torch.device) -> bool:
        """Whether storages on a device are counted."""
        wanted = self._device
        if wanted is None:
            return True
        return device.type == wanted.type and wanted.index in (None, device.index)

    def _freed(self, record: Record) -> None:
        if not self._done:
            self._log.note("free", record.ident, 0, "free", self._phase)

    def _resized(self, storage: Storage) -> None:
        if self._living.get(storage) is not None:
            self._meet(storage, "resize", "storage.resize_")

    def _name(self, tensor: torch.Tensor, category: str, rank: int) -> None:
        for part in plain(tensor):
            self._meet(part, "seen", "label")
            record = self._living.get(part.untyped_storage())
            if record is not None and rank >= record.rank:
                record.category, record.rank = category, rank

    def _look(self, owner: weakref.ref, category: str) -> None:
        """Name what a labelled module or optimizer holds now."""
        thing = owner()
        if isinstance(thing, torch.nn.Module):
            for parameter in thing.parameters():
                self._name(parameter, category, SAID)
                self._found_gradient(parameter)
            for buffer in thing.buffers():
                self._name(buffer, "buffers" if category == "weights" else category, SAID)
        elif thing is not None:
            for tensor in tensors(thing):
                self._name(tensor, category, FOUND)

    def _found_gradient(self, parameter: torch.Tensor) -> None:
        if parameter.grad is not None:
            self._name(parameter.grad, "gradients", FOUND)

    def _hook(self, owner: weakref.ref, category: str) -> None:
        """Keep looking until the end of the block."""
        thing, handles = owner(), []
        if isinstance(thing, torch.nn.Module):
            for p in thing.parameters():
                if p.requires_grad:
                    handle = p.register_post_accumulate_grad_hook(self._found_gradient)
                    _first(p._post_accumulate_grad_hooks, handle.id)
                    handles.append(handle)
        elif isinstance(thing, torch.optim.Optimizer):

            def stepped(optimizer: torch.optim.Optimizer, *_: Any) -> None:
                self._look(owner, category)
                for group in optimizer.param_groups:  # .grad may have been set by hand
                    for parameter in group["params"]:
                        self._found_gradient(parameter)

            handles.append(thing.register_step_post_hook(stepped))
        assert self._open is not None
        for handle in handles:
            self._open.callback(handle.remove)


def _first(hooks: Any, key: int) -> None:
    """Put one hook before the others, which may step and drop the gradient at once."""
    hooks.update({other: hooks.pop(other) for other in list(hooks) if other != key})


def _device(thing: torch.Tensor | Storage) -> torch.device:
    """Where it is; a fake tensor knows it without asking its mode."""
    return getattr(thing, "fake_device", None) or thing.device


def _default(thing: Any) -> str:
    return "weights" if isinstance(thing, torch.nn.Module) else "optimizer"


def _arguments(thing: Any) -> Iterator[Any]:
    """The tensors and storages among an operator's arguments."""
    if isinstance(thing, (torch.Tensor, Storage)):
        yield thing
    elif isinstance(thing, dict):
        for value in thing.values():
            yield from _arguments(value)
    elif isinstance(thing, (list, tuple)):
        for value in thing:
            yield from _arguments(value)
