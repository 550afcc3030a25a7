"""A step under torch.compile on tensors without values: what the compiler keeps, and its plan.

Dynamo reads the module's code, AOTAutograd makes graphs of forward and backward, and the
partitioner cuts them where least must wait: what is cheap to compute again is computed again. All
of that works on shapes alone, so the compiler itself runs here. Of Inductor only the last step is
left out: it writes kernels, and a program that makes their buffers and calls them. That program
runs, on tensors without values, and its kernels do nothing.
"""

import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from types import ModuleType
from typing import Any
from unittest.mock import patch

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from ..run import Run
from .fake_cuda.attention import attention
from .step_tracker import StepTracker


class CompiledTracker(StepTracker):
    """Counts what compiled code makes when it runs, and nothing of what the compiler tries out."""

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        return True

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Here Dynamo is at work, and is to leave the tracker's own code alone."""
        return True

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return super().__torch_dispatch__(func, types, args, kwargs)

    def __enter__(self) -> "CompiledTracker":
        super().__enter__()
        assert self._open is not None
        self._open.enter_context(torch.compiler.set_stance("default"))
        return self


def eager() -> AbstractContextManager:
    """Whatever is compiled besides the module, such as an optimizer's step, runs as it is read."""
    return torch.compiler.set_stance("force_eager")


class Graphs:
    """What Dynamo handed to the compiler: how many graphs, each with a forward and a backward."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.count = 0

    def notes(self) -> tuple[str, ...]:
        """Whose number it is, in sentences.

        Raises      ValueError where nothing was compiled
        """
        if not self.count:
            raise ValueError(
                f"compile={self.run.compile!r}: nothing was compiled, for the step calls parts of "
                "the module and never the module itself, or Dynamo cannot read its code"
            )
        made = f"compiled by torch {torch.__version__.partition('+')[0]}, {self.count} graph"
        broken = " (Dynamo breaks the code where it cannot read it)" if self.count > 1 else ""
        said = [f"{made}{'s'[: self.count > 1]}{broken}; the optimizer is not compiled"]
        if self.run.compile != "inductor":
            said.append(
                "the partitioner's graphs, operator by operator: nothing is fused, as Inductor "
                "would fuse it, and so each result is in memory"
            )
        elif self.run.backend == "cuda":
            said.append(
                "the buffers of Inductor's program for a CPU, with CUDA's attention: what waits "
                "for backward is cut by the same partitioner on a GPU, whose kernels may be fused "
                "otherwise; --compile aot_eager_decomp_partition is the step with nothing fused"
            )
        else:
            said.append("the buffers of the program that Inductor writes for a CPU")
        return tuple(said)


@contextmanager
def compiled(module: nn.Module, run: Run) -> Iterator[Graphs]:
    """While the block runs, each call of `module` is that of torch.compile(module).

    Changes     what `without_kernels` changes
    Source      torch, _inductor/graph.py and _dynamo/backends/debugging.py
    """
    graphs = Graphs(run)

    def on_fakes(graph: Any, inputs: Any) -> Any:
        graphs.count += 1
        if run.backend == "cpu":
            return backend(graph, inputs)
        with _CudaAttention(run.kernel):
            return backend(graph, inputs)

    with ExitStack() as stack:  # to the end: backward is compiled when it runs first
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")  # the compiler's, about its own modules
        stack.enter_context(without_kernels())
        backend = _backend(run.compile)
        module.compile(backend=on_fakes)
        stack.callback(setattr, module, "_compiled_call_impl", None)
        yield graphs


def _backend(name: str | None) -> Callable[[Any, Any], Any]:
    if name == "inductor":
        from torch._inductor.compile_fx import compile_fx

        return compile_fx
    from torch._dynamo.backends.debugging import aot_eager_decomp_partition

    return aot_eager_decomp_partition


class _CudaAttention(TorchFunctionMode):
    """Attention as CUDA's kernels take it, for tensors that a compiler has on the CPU.

    Norms and dropout it takes apart on any device.
    """

    def __init__(self, kernel: str) -> None:
        super().__init__()
        self.kernel = kernel

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func is F.scaled_dot_product_attention:
            return attention(*args, **(kwargs or {}), kernel=self.kernel)
        return func(*args, **(kwargs or {}))


@contextmanager
def without_kernels() -> Iterator[None]:
    """While the block runs, Inductor's programs are loaded with kernels that do nothing.

    The compiler of C++ is never called. What a kernel's code looks like does not count here, and
    so it is that of a processor without vectors, which is the same on every machine. A program
    makes its buffers as ever, so their bytes are right; what is computed in them is not.

    Changes     torch._dynamo is reset before and after: what a program had compiled until then is
                compiled again when it is called next. No cache is read or written
    Source      torch, _inductor/graph.py
    """
    from torch._functorch import config as functorch
    from torch._inductor import config, cpu_vec_isa
    from torch._inductor.graph import GraphLowering

    with ExitStack() as stack:
        stack.enter_context(config.patch(fx_graph_cache=False, fx_graph_remote_cache=False))
        stack.enter_context(functorch.patch(enable_autograd_cache=False))
        stack.enter_context(patch.object(cpu_vec_isa, "valid_vec_isa_list", list))
        stack.enter_context(patch.object(GraphLowering, "_compile_to_module_lines", _loaded))
        torch._dynamo.reset()
        stack.callback(torch._dynamo.reset)
        yield


def _loaded(graph: Any, code: Any) -> ModuleType:
    """The program that Inductor wrote, as a module of its own that no cache knows."""
    from torch._inductor.async_compile import AsyncCompile

    program = ModuleType("memlab_inductor")
    program.__file__ = __file__
    vars(program).update(graph.constants)
    with patch.object(AsyncCompile, "cpp_pybinding", lambda *_: _nothing):
        exec(compile(code.value, "<the program of Inductor>", "exec"), vars(program))
    vars(program).update(empty_strided_cpu=_buffer, reinterpret_tensor=_view)
    return program


def _nothing(*_: Any) -> None:
    """In the place of a kernel, which writes into buffers that are there."""


def _buffer(size: Any, stride: Any, dtype: torch.dtype) -> Tensor:
    return torch.empty_strided(size, stride, dtype=dtype)


def _view(tensor: Tensor, size: Any, stride: Any, offset: int = 0) -> Tensor:
    return torch.as_strided(tensor, size, stride, tensor.storage_offset() + offset)
