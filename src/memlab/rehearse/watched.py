"""The tracker of a rehearsal: lines, phases, steps, and the host's bytes apart."""

import itertools
import sys
from typing import Any

import torch
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)
from torch.utils._python_dispatch import _pop_mode, _push_mode

from ..measure.fake_cuda.lines import Lines, Where
from ..measure.fake_cuda.refused import Done, Refused
from ..measure.line_tracker import LineTracker
from ..measure.step_tracker import DEVICE, HOST, StepTracker
from ..measure.storages import PerStorage, Storage, plain
from ..measure.tracker import Tracker
from .dtensors import answering, device_of

FEW = 3  # times as many steps as were asked for: of two optimizers, one may never step


class Watched(LineTracker, StepTracker):
    """Follows a program to its Nth optimizer step.

    where       the two lines of each storage
    outside     whether the program may reach tensors that were made before it: a function may
    cards       numbers of others that had tensors, where one process has several
    host_peak   bytes of tensors on the host, at most
    ended       whether it stopped after its last step
    trains      whether a module was called with gradients
    trains_whole whether one that has layers to checkpoint was, without doing it
    stepped     classes of the optimizers; `foreach` tells whether torch chose that for one
    """

    follow = True

    def __init__(self, device: str, lines: Lines, steps: int) -> None:
        super().__init__(device)
        self.finder, self.wanted = lines, steps
        self.where: dict[int, Where] = {}
        self.optimizers: dict[int, int] = {}
        self._task = -1  # autograd's number of the last backward pass
        # Of each optimizer: that pass, its steps since, and those after the pass before.
        self._calls: dict[int, tuple[int, int, int]] = {}
        self.host = self.host_peak = 0
        self.cards: set[int] = set()
        self._one_of_several = ":" in device
        self.outside = self._passing = False
        self._depth = 0  # operators of DTensors that are running, one inside the other
        self.divided: tuple[Any, ...] = ()
        self.flight: Any = None
        self.observer: Any = None
        self.ended = self.trains = self.trains_whole = self.foreach = False
        self.stepped: set[type] = set()
        self._apart = device != "cpu"
        self._on_host: PerStorage[int] = PerStorage(self._host_freed)
        self._phase = "start"

    def __enter__(self) -> "Watched":
        super().__enter__()
        for hook in (
            register_optimizer_step_pre_hook(self._stepping),
            register_optimizer_step_post_hook(self._enough),
        ):
            self._hooks.callback(hook.remove)
        return self

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        task = torch._C._current_graph_task_id()
        if task != -1:
            self._task = task
        if self.divided and any(issubclass(held, self.divided) for held in types):
            return self._divided(func, args, kwargs or {})
        if self.flight is not None and func in (self.flight.waits, *self.flight.sends):
            return self._flies(func, types, args, kwargs)
        if self._depth and func not in self.kernels:
            # a sum that a DTensor makes for itself is not one of autograd's
            return Tracker.__torch_dispatch__(self, func, types, args, kwargs)
        result = super().__torch_dispatch__(func, types, args, kwargs)
        if self.observer is not None and func not in self.kernels:
            self.observer.sees(func, args, kwargs, result)
        return result

    def _divided(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """An operator of tensors around tensors, whose inner ones come by here too."""
        if func is DEVICE:
            return self.answered(device_of(args[0]))
        if self._asked is not None and kwargs.get("device") == HOST:
            kwargs = self.placed(func, kwargs)
        if self._passing:
            self._passing = False
            return NotImplemented
        self._passing, self._depth = True, self._depth + 1
        _push_mode(self)
        try:
            result = func(*args, **kwargs)
        finally:
            _pop_mode()
            self._passing, self._depth = False, self._depth - 1
        return answering(result, args)

    def _flies(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if func is self.flight.waits:
            return self.flight.lands(args[0])
        result = Tracker.__torch_dispatch__(self, func, types, args, kwargs)
        self.flight.leaves(args[0], result)
        return result

    def _meet(self, thing: Any, kind: str, func: Any) -> None:
        known = len(self.records)
        super(LineTracker, self)._meet(thing, kind, func)
        if len(self.records) > known:
            where = self.finder.of(sys._getframe(1))
            for ident in range(known, len(self.records)):
                self.lines[ident], self.where[ident] = where.reader, where
                device = self.records[ident].device
                if not self._one_of_several and device.partition(":")[2] not in ("", "0"):
                    raise Refused(
                        f"a tensor on {device}, at {where.reader.where} {where.reader.code}: one "
                        "card is seen; CUDA_VISIBLE_DEVICES=0,1 before the program shows it two"
                    )
        elif self._apart:
            self._meet_host(thing)

    def _meet_host(self, thing: Any) -> None:
        for part in (thing,) if isinstance(thing, Storage) else plain(thing):
            storage = part if isinstance(part, Storage) else part.untyped_storage()
            device = getattr(part, "fake_device", None) or part.device
            if device.type == "cuda" and not self.device_counts(device):
                self.cards.add(device.index or 0)
            elif device.type == "cpu" and self._on_host.get(storage) is None:
                size = storage.nbytes()
                self._on_host.add(storage, size)
                self.host += size
                self.host_peak = max(self.host_peak, self.host)

    def _host_freed(self, size: int) -> None:
        self.host -= size

    def _called(self, module: torch.nn.Module, arguments: tuple[Any, ...]) -> None:
        if self._phase == "start":
            self._phase = "forward"
        if self.outside and module not in self._named:
            for parameter in module.parameters():
                self.made_before(parameter)
        if not self.trains_whole:
            self.trains = self.trains or torch.is_grad_enabled()
            self.trains_whole = checkpoints(module)
        super()._called(module, arguments)

    def made_before(self, parameter: Any) -> None:
        """Refuse a weight that has values: it is the reader's own, and would lose them."""
        if self.outside and type(parameter) is torch.nn.Parameter:
            where = self.finder.of(sys._getframe(1)).reader
            raise Refused(
                f"{where.where} {where.code}: a model that was made before the rehearsal; let the "
                "function make its model"
            )

    def _look(self, owner: Any, category: str) -> None:
        super()._look(owner, category)
        thing = owner()
        for parameter in thing.parameters() if isinstance(thing, torch.nn.Module) else ():
            state = getattr(parameter, "quant_state", None)  # bitsandbytes': scales and code
            while state is not None:
                for value in vars(state).values():
                    if isinstance(value, torch.Tensor):
                        self._known(value, category)
                state = getattr(state, "state2", None)

    def _stepping(self, *_: Any) -> None:
        self._phase = "optimizer"

    def _enough(self, optimizer: Any, *_: Any) -> None:
        """After LineTracker has written the step down."""
        self._phase = "forward"
        self.stepped.add(type(optimizer))
        task, calls, before = self._calls.get(id(optimizer), (-1, 0, 1))
        if task != self._task:
            calls, before = 0, max(calls, 1)
        calls += 1
        self._calls[id(optimizer)] = self._task, calls, before
        if self._task == -1 and (calls == 1 or "deepspeed" in sys.modules):  # it makes its states
            self.steps.pop()
            return
        group = optimizer.param_groups[0]
        self.foreach = self.foreach or (group.get("foreach", 0) is None and not group.get("fused"))
        done = self.optimizers
        if calls > 1 and self._task != -1:  # one step goes on: DeepSpeed's next sub-group
            del self.steps[-2]
        else:
            done[id(optimizer)] = done.get(id(optimizer), 0) + 1
        least, most = min(done.values()), max(done.values())
        if calls >= before and (least >= self.wanted or most >= FEW * self.wanted):
            self.ended = True
            raise Done

    def peaks(self) -> list[int]:
        """The peak of each step: from the one before it, or the start, to its end."""
        marks = [-1, *self.steps]
        found = []
        for first, last in itertools.pairwise(marks):
            here = self.timeline[first + 1 : last + 1]
            found.append(max((event.total for event in here), default=0))
        return found


def checkpoints(module: Any) -> bool:
    """Whether a model of transformers is called that could checkpoint its layers, and does not."""
    able = getattr(type(module), "supports_gradient_checkpointing", False)
    return able and module.training and torch.is_grad_enabled() and not _checkpointed(module)


def _checkpointed(module: Any) -> bool:
    for name in ("is_activation_checkpointing", "is_gradient_checkpointing"):  # the older one warns
        if hasattr(type(module), name):
            return bool(getattr(module, name))
    return True
