"""Gradients: one number per trained parameter, and what accumulating them adds.

P parameters · k micro-batches per optimizer step
"""

from ..formats import storage
from ..units import whole


def gradients(count, format="fp32", row=None):
    """Bytes of the gradients that backward leaves in `.grad`.

    Formula     P · b
    Shapes      each gradient has its parameter's shape and, in PyTorch, its dtype
    Unit        bytes, a whole number
    Source      torch.Tensor.grad: "the attribute will then contain the gradients computed"
    Leaves out  frozen parameters (pass only the trained ones), buckets of a distributed run
    Raises      ValueError for a negative count or an unknown format
    """
    return storage(whole("count", count), format, row=row)


def accumulator(count, format="fp32"):
    """Bytes of a second gradient buffer that sums micro-batches in a wider format.

    Formula     P · b
    Shapes      one buffer of the parameter's shape for each parameter
    Unit        bytes, a whole number
    Source      Megatron-LM, `main_grad`; Smith et al. 2022, arXiv:2201.11990
    Leaves out  the gradients themselves, which stand beside it
    Raises      ValueError for a negative count or an unknown format
    """
    return storage(whole("count", count), format)


def accumulation_transient(largest, micro_batches, format="fp32"):
    """Bytes that adding to an existing `.grad` needs beside it, at the worst moment.

    Formula     max P_i · b   for k > 1, nothing for k = 1
    Shapes      the fresh gradient of one parameter, alive until it is added to `.grad`
    Unit        bytes, a whole number
    Source      torch/csrc/autograd/functions/accumulate_grad.h: the first gradient is moved into
                `.grad`, a later one is added to it
    Leaves out  weights that are used twice (tied): their two gradients meet before `.grad`
    Raises      ValueError for k = 0, a negative count or an unknown format
    """
    if whole("micro_batches", micro_batches) == 0:
        raise ValueError("micro_batches=0; a step needs at least one micro-batch")
    return storage(whole("largest", largest), format) if micro_batches > 1 else 0
