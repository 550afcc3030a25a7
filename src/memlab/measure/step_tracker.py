"""A tracker for steps on fake tensors: it undoes what a mode changes, and skips missing values."""

import sys
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensor
from torch.utils._python_dispatch import _pop_mode, _push_mode

from .tracker import Tracker

DEVICE = torch.ops.prim.device.default  # what autograd asks of every gradient
HOST = torch.device("cpu")
MAKES = ("new_", "empty", "zeros", "ones", "full", "scalar_tensor")  # so begin names of factories
# Files of torch, and of trackers, that stand around what autograd calls.
BESIDE = ("_stats.py", "_compile.py", "eval_frame.py", "_ops.py", "step_tracker.py", "watched.py")


class StepTracker(Tracker):
    """Adds gradients in place, and lets optimizers read numbers that are not there.

    In place    where two gradients meet at one tensor, autograd adds the second to the first if it
                alone holds that, and never under a dispatch mode, where every such meeting costs
                one buffer more for a moment; so the mode does it instead
    Numbers     an optimizer that asks for the value of a tensor (Adafactor, for its step size) gets
                a 1: in an optimizer such values scale others and decide no shape

    kernels     of operators that torch cannot look into, their code: what it allocates on the way
                is seen, too
    follow      while true, a phase in which backward runs turns to "backward" for as long
    turned      the last event before that happened first, or -1
    Source      can_accumulate_inplace in torch/csrc/autograd/input_buffer.cpp
    """

    follow = False
    turned = -1

    def __init__(self, device: str | None = None) -> None:
        super().__init__(device)
        self.kernels: dict[Any, Any] = {}
        self._asked: torch.device | None = None

    def answered(self, device: torch.device) -> torch.device:
        """The device of a tensor, as whoever asks for it has to hear: autograd, that of the host.

        Autograd's engine would go to the device, and this torch was not built for it.
        """
        if not _called_by_autograd():
            return device
        self._asked = device
        return HOST

    def placed(self, func: Any, kwargs: dict[str, Any]) -> dict[str, Any]:
        """Arguments of what autograd makes in C++: on the device of the tensor it asked last.

        A gradient that lies otherwise than its parameter is copied into its order, for one.
        """
        made = func._schema.name.removeprefix("aten::").startswith(MAKES)
        if not made or self._asked == HOST or not _called_by_autograd():
            return kwargs
        return {**kwargs, "device": self._asked}

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func is DEVICE and type(args[0]) is FakeTensor:
            device = args[0].fake_device
            if device.type != "cpu" or self._asked is not None:
                return self.answered(device)
            if not self.follow and self.knows(args[0].untyped_storage()):
                return device
        if self._asked is not None and kwargs and kwargs.get("device") == HOST:
            kwargs = self.placed(func, kwargs)
        code = self.kernels.get(func)
        if code is not None and any(type(each) is FakeTensor for each in args):
            _push_mode(self)
            try:
                return code(*args, **(kwargs or {}))
            finally:
                _pop_mode()
        with torch._C.DisableTorchFunction():  # a mode's own calls are not the model's
            return self._step(func, types, args, kwargs)

    def _step(self, func: Any, types: Any, args: Any, kwargs: dict[str, Any] | None) -> Any:
        backward = torch._C._current_graph_task_id() != -1
        if self.follow and backward != (self._phase == "backward"):
            if backward and self.turned < 0:
                self.turned = len(self.timeline) - 1
            self._phase = "backward" if backward else "forward"
        meets = func is torch.ops.aten.add.Tensor and not kwargs and not torch.is_grad_enabled()
        if meets and backward and _alone(*args):
            return args[0].add_(args[1])
        try:
            return super().__torch_dispatch__(func, types, args, kwargs)
        except DataDependentOutputException:
            if self._phase == "optimizer" and func is torch.ops.aten._local_scalar_dense.default:
                return 1.0 if args[0].is_floating_point() else 1
            raise


def _called_by_autograd() -> bool:
    """Whether a mode's __torch_dispatch__ was called by autograd's engine itself."""
    frame = sys._getframe(2)
    while frame is not None:
        code = frame.f_code  # a mode of the program's own may stand between
        if code.co_name != "__torch_dispatch__" and not code.co_filename.endswith(BESIDE):
            return code.co_name == "_engine_run_backward"
        frame = frame.f_back  # type: ignore[assignment]
    return True


# Who else holds a tensor while a mode handles it: its Python object, the arguments, autograd's
# buffer and the call in progress; and the storage's Python object beside the tensor.
TENSOR_HOLDERS, STORAGE_HOLDERS = 4, 2


def _alone(first: Any, second: Any) -> bool:
    """Whether only autograd holds the first, and the second can be added to it in place."""
    if not isinstance(first, Tensor) or not isinstance(second, Tensor):
        return False
    storage = first.untyped_storage()._cdata
    alike = first.shape == second.shape and first.dtype == second.dtype
    holders = first._use_count()  # type: ignore[attr-defined]
    return (
        _dense(first)
        and alike
        and holders <= TENSOR_HOLDERS
        and torch._C._storage_Use_Count(storage) <= STORAGE_HOLDERS
    )


def _dense(tensor: Tensor) -> bool:
    """Whether its values fill a block of memory, in whatever order of dimensions."""
    expected = 1
    for step, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size != 1 and step != expected:
            return False
        expected *= size
    return True
