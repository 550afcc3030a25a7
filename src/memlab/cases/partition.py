"""What a compiled step keeps for backward: the compiler's own choice, asked of fake tensors.

`torch.compile` sees forward and backward as one graph. Before it makes kernels it cuts that graph
in two where least must be carried over: what is cheap to compute again is computed again. The cut
is `min_cut_rematerialization_partition`; here it runs on shapes alone, at any size.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, suppress
from io import StringIO
from typing import Any

from torch import Tensor, nn
from torch._functorch.aot_autograd import aot_function
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch._guards import active_fake_mode
from torch._inductor.decomposition import select_decomp_table
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.func import functional_call

from ..base.gc_paused import no_garbage
from ..measure.fake_copies import Fakes
from ..measure.saved import Row


class Crossing:
    """What crosses from forward to backward; `bytes` counts each storage once, whole.

    rows        one a tensor: the operator that made it, dtype, shape, bytes of the storage, and
                whose storage it shares: another row's, or that of something given
    given       weights and inputs; a view of one of them, such as a transposed bf16 weight, is no
                memory of its own
    Leaves out  weights and inputs, which are there anyway
    """

    def __init__(self, crossing: list[tuple[str, Tensor]], given: list[Tensor]) -> None:
        self.rows: list[Row] = []
        first = {tensor.untyped_storage()._cdata: "given" for tensor in given}
        for op, tensor in crossing:
            storage = tensor.untyped_storage()
            dtype, shape = str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape)
            shared = first.get(storage._cdata, "")
            first.setdefault(storage._cdata, op)
            self.rows.append(Row(op, "", dtype, shape, storage.nbytes(), shared))

    @property
    def bytes(self) -> int:
        return sum(row.bytes for row in self.rows if not row.shared)

    def of_dtype(self, name: str) -> int:
        """Bytes of the storages whose first tensor has that dtype, such as "float8_e4m3fn"."""
        return sum(row.bytes for row in self.rows if not row.shared and row.dtype == name)


def cut(net: nn.Module, *inputs: Tensor) -> Crossing:
    """Partition net(*inputs), a loss, as torch.compile would.

    Example     cut(net, ids, ids).bytes, with `net` on the meta device
    Source      torch/_functorch/partitioners.py, with the decompositions of Inductor
    Leaves out  what Inductor changes afterwards; kernels that only CUDA has (attention is the
                flash kernel of the CPU, which keeps as much as FlashAttention)
    """
    crossing: list[tuple[str, Tensor]] = []
    there: list[Tensor] = []

    def forward(graph: Any, given: Any) -> Any:
        (end,) = (node for node in graph.graph.nodes if node.op == "output")
        for node in graph.graph.nodes:
            value = node.meta.get("val")
            if node.op == "placeholder" and isinstance(value, Tensor):
                there.append(value)
        for node in end.args[0][1:]:  # the first is the loss
            value = node.meta.get("val")
            if node.op != "placeholder" and isinstance(value, Tensor):
                crossing.append((str(node.target), value))
        raise _Known  # the graphs themselves are not needed

    mode = active_fake_mode() or FakeTensorMode(allow_non_fake_inputs=True)
    with mode, _quiet(), no_garbage(collect=False):  # a fifth of the time, with graphs this large
        fakes = Fakes(mode)
        module = fakes.module(net)
        weights, buffers = dict(module.named_parameters()), dict(module.named_buffers())

        def step(weights: Any, buffers: Any, given: Any) -> Tensor:
            return functional_call(module, {**weights, **buffers}, tuple(given))

        aot: Any = aot_function
        compiled: Callable = aot(
            step,
            forward,
            lambda graph, given: graph,
            partition_fn=min_cut_rematerialization_partition,
            decompositions=select_decomp_table(),
        )
        with suppress(_Known):
            compiled(weights, buffers, fakes.inputs(list(inputs)))
    return Crossing(crossing, there)


class _Known(Exception):  # noqa: N818, no error: the cut has been seen
    pass


@contextmanager
def _quiet() -> Iterator[None]:
    """The partitioner may write to the error stream what no reader of a page needs."""
    with redirect_stderr(StringIO()):
        yield


__all__ = ["Crossing", "cut"]
