"""torch._scaled_mm on a CPU, by products in fp32 that take as long on one processor as on another.

torch's own kernel depends on the processor. Where it finds no AVX-512 it multiplies the dequantized
factors in fp32, as here. Elsewhere it asks oneDNN, and on one processor with AMX a product of 256 x
256 x 256 took 0.58 s that way, where the same in bf16 took 0.01 s. Programs that train in FP8 call
the operator themselves, torchao's layers among them, so it is the operator that is replaced: in
this process, for tensors on a CPU, once memlab has handed out one of these programs. On a GPU, on
fake tensors and in what a tracker sees (one operator that allocates its result) nothing changes.
"""

import functools

import torch
from torch import Tensor

from .quiet import quiet


def scaled_mm(
    a: Tensor,
    b: Tensor,
    scale_a: Tensor,
    scale_b: Tensor,
    bias: Tensor | None = None,
    scale_result: Tensor | None = None,
    out_dtype: torch.dtype | None = None,
    use_fast_accum: bool = False,
) -> Tensor:
    """a [M, K] in FP8 times b [K, N] in FP8, each multiplied with its scale first.

    Shapes      scale_a [] or [M, 1], scale_b [] or [1, N], in fp32; returns [M, N] in `out_dtype`,
                or in a's
    Source      _scaled_mm_out_cpu_emulated in aten/src/ATen/native/Blas.cpp: the same numbers
    Leaves out  use_fast_accum, which asks a GPU to add up with fewer bits
    Raises      NotImplementedError for scale_result
    """
    if scale_result is not None:
        raise NotImplementedError("scale_result is for results in FP8; leave it out on a CPU")
    y = (a.float() * scale_a) @ (b.float() * scale_b)
    return (y if bias is None else y + bias).to(out_dtype or a.dtype)


@functools.cache  # once in a process
def quick_on_a_cpu() -> torch.library.Library:
    """Put `scaled_mm` in the place of torch's kernel for tensors on a CPU."""
    library = torch.library.Library("aten", "IMPL")
    with quiet():  # torch warns that the operator had a kernel
        library.impl("_scaled_mm", scaled_mm, "CPU")
    return library
