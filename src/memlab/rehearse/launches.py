"""Triton's kernels allocate nothing: a launch does nothing here.

Source      Triton 3.9: triton/runtime/jit.py and autotuner.py
"""

import sys
from importlib import import_module
from typing import Any

from torch import Tensor

from .assumed import Assumed
from .undo import Changes
from .values import Values


def launches(changes: Changes, values: Values, assumed: Assumed) -> None:
    """Skip every launch, and count it."""
    if "triton" not in sys.modules:
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

    jit = import_module("triton.runtime.jit").JITFunction
    tuned = import_module("triton.runtime.autotuner")
    for kind in (jit, tuned.Autotuner, tuned.Heuristics):
        changes.replace(kind, "run", run)
