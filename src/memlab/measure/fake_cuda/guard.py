"""Tensors without values on the device cuda, in a torch that was built without CUDA.

Source      PyTorch 2.13: c10/core/impl/DeviceGuardImplInterface.h (the registry and
            NoOpDeviceGuardImpl); torch._C._ensureCUDADeviceGuardSet, which FakeTensorMode calls
Leaves out  Windows, where the registry's symbol has another name; macOS has not been tried
"""

import ctypes
import sys
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import torch

from .attention import KERNELS, attention
from .refused import Refused
from .undo import Changes

REGISTRY = "_ZN3c104impl26device_guard_impl_registryE"
LIBRARY = {"linux": "libc10.so", "darwin": "libc10.dylib"}
CUDA, DEVICE_TYPES = 1, 32  # c10::DeviceType::CUDA; more than torch has
VIRTUALS = 64  # more than the interface has
RMS_NORM = "aten::_fused_rms_norm"
_kept: list[Any] = []  # torch may hold an address of these for as long as the process lives


def device_guard() -> None:
    """Give torch a guard for devices of CUDA that does nothing; torch has one of its own.

    It stays: a tensor that outlives the rehearsal needs it, and nothing else asks for it.
    Raises      Refused where torch cannot be reached
    """
    if torch.cuda.device_count():
        return  # a real one
    if sys.platform not in LIBRARY:
        raise Refused(f"on {sys.platform} there is no card without a card: say --backend cpu")
    try:
        library = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / LIBRARY[sys.platform]))
        registry = (ctypes.c_void_p * DEVICE_TYPES).in_dll(library, REGISTRY)
        ensure = torch._C._ensureCUDADeviceGuardSet
    except (OSError, ValueError, AttributeError) as error:
        raise Refused(
            f"torch {torch.__version__} has no place for a device without CUDA ({error}); "
            "2.11 to 2.13 have"
        ) from error
    if registry[CUDA] is None:
        # torch replaces a guard that counts no devices by its own, and an empty place by none: so
        # here is an object, each of whose virtual functions returns 0, for as long as that takes.
        nothing = ctypes.CFUNCTYPE(ctypes.c_int8, ctypes.c_void_p)(lambda _: 0)
        slot = ctypes.cast(nothing, ctypes.c_void_p).value
        table = (ctypes.c_void_p * VIRTUALS)(*[slot] * VIRTUALS)
        thing = (ctypes.c_void_p * 4)(ctypes.addressof(table), 0, 0, 0)
        _kept.extend((nothing, table, thing))
        registry[CUDA] = ctypes.addressof(thing)
        ensure()
        if registry[CUDA] == ctypes.addressof(thing):
            registry[CUDA] = None
            raise Refused(f"torch {torch.__version__} keeps another guard than its own")


def kernels(changes: Changes, kernel: str = "auto") -> None:
    """Say of operators that CUDA has kernels for them, so that they stay whole as on a GPU.

    Where a device has no kernel, the dispatcher takes an operator apart, and its parts keep other
    tensors for backward. Which ones these are is asked here: those that can be taken apart, and
    that the CPU has a kernel for; and one for which the CPU has none either.

    kernel      of attention: memlab.measure.fake_cuda.attention
    Raises      ValueError for an unknown kernel
    """
    if kernel not in KERNELS:
        raise ValueError(f"unknown attention {kernel!r}; known: {', '.join(KERNELS)}")
    library = torch.library.Library("aten", "IMPL")
    changes.callback(library._destroy)
    for name in _apart():
        library.impl(name, _none, "CUDA")
    # Its kernel is chosen in C++ among those of the device, of which this torch has none.
    for key in ("AutogradCUDA", "CUDA"):
        library.impl("scaled_dot_product_attention", partial(attention, kernel=kernel), key)


@lru_cache
def _apart() -> tuple[str, ...]:
    """Operators that the dispatcher would take apart on a card for want of a kernel."""
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    every = (n for n in torch._C._dispatch_get_all_op_names() if n.startswith("aten::"))
    return tuple(
        name.removeprefix("aten::")
        for name in every
        if has(name, "CompositeImplicitAutograd")
        and (has(name, "CPU") or name == RMS_NORM)
        and not has(name, "CUDA")
    )


def _none(*_: Any, **__: Any) -> Any:
    raise NotImplementedError("no kernel of CUDA runs here")
