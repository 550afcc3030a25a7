"""scaled_dot_product_attention: which kernel PyTorch takes for a call, and what that one does.

    flash       keeps q, k, v, its output and one fp32 number a row: no scores
    efficient   the same on CUDA for what flash does not take: fp32, or a mask
    math        written out, every score in fp32: where neither takes the call

On CUDA, dropout happens inside flash and efficient, which keep the state of the random numbers and
no mask of what was dropped; on the CPU it leaves only math.

Source      torch: aten/src/ATen/native/transformers/cuda/sdp_utils.cpp, sdp_utils_cpp.cpp,
            attention.cpp; transformers: integrations/sdpa_attention.py
Leaves out  cuDNN's kernel, which PyTorch may prefer on an H100 or B200 (keeps what flash keeps),
            and, after torch 2.13, an efficient kernel that takes shared heads
"""

from __future__ import annotations

FLASH_WIDEST = 256  # check_head_dim_size_flash


def kernel(
    backend: str,
    dtype: str,
    width: int,
    *,
    values: int | None = None,
    shared: bool = False,
    masked: bool = False,
    dropout: float = 0.0,
) -> str:
    """flash, efficient or math.

    dtype       of the query, after autocast
    width       of a head's query and key, H
    values      of its values, where it is another: flash takes one width alone
    shared      whether fewer key/value heads than query heads come in (GQA, MQA)
    """
    alike = values is None or values == width
    if backend == "cpu":
        return "math" if dropout or not alike else "flash"
    narrow = dtype != "fp32"
    if narrow and not masked and alike and width <= FLASH_WIDEST:
        return "flash"
    least = 8 if narrow else 4
    if not shared and width % least == 0 and (values or width) % least == 0:
        return "efficient"
    return "math"
