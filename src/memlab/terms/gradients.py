"""Gradients: one number per trained parameter, and what accumulating them adds.

P parameters · k micro-batches per optimizer step
"""

from __future__ import annotations

from ..formats import storage
from ..units import whole
from .tied import waiting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..formats import Format


def gradients(count: int, *, format: str | Format = "fp32", row: int | None = None) -> int:
    """Bytes of the gradients that backward leaves in `.grad`.

    Formula     P · b
    Shapes      each gradient has its parameter's shape and, in PyTorch, its dtype
    Unit        bytes, a whole number
    Source      torch.Tensor.grad: "the attribute will then contain the gradients computed"
    Leaves out  frozen parameters (pass only the trained ones), buckets of a distributed run
    Raises      ValueError for a negative count or an unknown format
    """
    return storage(whole("count", count), format, row=row)


def accumulator(count: int, *, format: str | Format = "fp32") -> int:
    """Bytes of a second gradient buffer that sums micro-batches in a wider format.

    Formula     P · b
    Shapes      one buffer of the parameter's shape for each parameter
    Unit        bytes, a whole number
    Source      Megatron-LM, `main_grad`; Smith et al. 2022, arXiv:2201.11990
    Leaves out  the gradients themselves, which stand beside it
    Raises      ValueError for a negative count or an unknown format
    """
    return storage(whole("count", count), format)


def accumulation_transient(
    largest: int, *, micro_batches: int, format: str | Format = "fp32", tied: int = 0
) -> int:
    """Bytes of fresh gradients beside `.grad` at the worst moment of the last micro-batch.

    Formula     k = 1: 2 · P_tied · b;  k > 1: max(max P_i, 3 · P_tied) · b
    Shapes      P_i: one parameter, whose fresh gradient lives until it is added to `.grad`;
                P_tied: a table that is used twice, embedding and head (0: none). Its first
                gradient waits through the whole backward pass for its second, and their sum is a
                third table, which becomes `.grad` (k = 1) or is added to it
    Unit        bytes, a whole number
    Source      torch/csrc/autograd/functions/accumulate_grad.h: the first gradient is moved into
                `.grad`, a later one is added to it
    Leaves out  a bias, whose gradient is made together with its matrix's; under autocast the
                narrow gradient that each wide one is cast from
    Raises      ValueError for k = 0, a negative count or an unknown format
    """
    twice = waiting(whole("tied", tied), micro_batches=micro_batches, format=format)
    if micro_batches == 1:
        return twice
    return max(storage(whole("largest", largest), format), twice)
