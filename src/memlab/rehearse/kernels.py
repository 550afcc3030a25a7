"""bitsandbytes' operators as its own Python code runs them, with kernels that do nothing.

torch asks an operator of a library for the shape of what it returns, and sees no more of it. Those
of bitsandbytes allocate on the way: a layer of four bits writes its weight out, unless there are so
few rows that the card's fused kernel is faster, which is decided for each card and shape.

Source      bitsandbytes: backends/default/ops.py, and backends/cuda/ops.py, which it reads
            where torch has CUDA; _ops.py: register_kernel; functional.py
"""

import importlib.util
import sys
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from ..measure.fake_cuda.undo import Changes

CODE = ("default", "cuda")  # the second where both have one


def tensors(changes: Changes) -> None:
    """What bitsandbytes makes past its operators: maps of 256 numbers, pages of managed memory.

    Pages       lie on the host here; the card's allocator does not know of them
    """
    functional = sys.modules.get("bitsandbytes.functional")
    if functional is None:
        return
    changes.emptied(functional.name2qmap)
    made = functional.create_dynamic_map

    def create_dynamic_map(*args: Any, **kwargs: Any) -> Any:
        with _disable_current_modes():  # from values
            real = made(*args, **kwargs)
        return torch.empty(real.shape, dtype=real.dtype)

    def get_paged(*shape: int, dtype: Any = torch.float32, device: Any = None) -> Any:
        page: Any = torch.empty(shape, dtype=dtype)
        page.is_paged, page.page_deviceid = True, getattr(device, "index", None) or 0
        return page

    changes.replace(functional, "create_dynamic_map", create_dynamic_map)
    changes.replace(functional, "get_paged", get_paged)
    changes.replace(functional, "lib", Nothing())


def kernels() -> dict[Any, Any]:
    """The code of each operator, if bitsandbytes was imported.

    In copies of its modules: what they remember of a card ends with the rehearsal.
    """
    registry = sys.modules.get("bitsandbytes._ops")
    return {} if registry is None else _read(registry)


def _read(registry: Any) -> dict[Any, Any]:
    found: dict[str, Any] = {}

    def register_kernel(name: str, backend: str) -> Any:
        def keep(code: Any) -> Any:
            found[name.partition("::")[2]] = code
            return code

        return keep

    with Changes() as reading:
        reading.replace(registry, "register_kernel", register_kernel)
        reading.replace(sys.modules["bitsandbytes.cextension"], "lib", Nothing())
        reading.replace(torch._C, "_cuda_getCurrentRawStream", Nothing())
        reading.replace(sys.modules["bitsandbytes.functional"], "CUBLAS_Context", Nothing())
        for backend in CODE:
            spec = importlib.util.find_spec(f"bitsandbytes.backends.{backend}.ops")
            if spec is not None and spec.loader is not None:
                spec.loader.exec_module(importlib.util.module_from_spec(spec))
    # Below autograd, where code of an operator runs, `if tensor:` and item() come in one piece.
    aten = torch.ops.aten
    value = aten._local_scalar_dense.default
    made: dict[Any, Any] = {aten.item.default: value, aten.is_nonzero.default: value}
    for name, code in found.items():
        operator, _, overload = name.partition(".")
        packet = getattr(torch.ops.bitsandbytes, operator, None)
        if packet is not None:
            made[getattr(packet, overload or "default")] = code
    return made


class Nothing:
    """A library whose every function does nothing, and well."""

    def __getattr__(self, name: str) -> Any:
        return self

    def __call__(self, *_: Any, **__: Any) -> Any:
        return self

    def __bool__(self) -> bool:
        return False  # no error
