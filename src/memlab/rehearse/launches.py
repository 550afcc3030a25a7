"""Triton's kernels allocate nothing: a launch does nothing here.

Source      Triton 3.9: triton/runtime/jit.py and autotuner.py
"""

import sys
from typing import Any

from torch import Tensor

from ..measure.fake_cuda.assumed import Assumed
from ..measure.fake_cuda.undo import Changes
from ..measure.fake_cuda.values import Values


def launches(changes: Changes, values: Values, assumed: Assumed) -> None:
    """Skip every launch, and count it."""
    jit, tuned = (sys.modules.get(f"triton.runtime.{name}") for name in ("jit", "autotuner"))
    if jit is None or tuned is None:
        return

    def run(kernel: Any, *args: Any, **kwargs: Any) -> None:
        function = kernel
        while hasattr(function, "fn"):
            function = function.fn
        name = getattr(function, "__name__", "?")
        assumed.skip("a launch of Triton's kernel {name}, which allocates nothing", name=name)
        for each in (*args, *kwargs.values()):
            if isinstance(each, Tensor):
                values.forget(each)

    for kind in (jit.JITFunction, tuned.Autotuner, tuned.Heuristics):
        changes.replace(kind, "run", run)
